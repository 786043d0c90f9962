// SPDX-License-Identifier: BSD-3-Clause
// PMI's board: a client of version 1 of its wire, over the connection that the launcher has left in
// PMI_FD. board.hpp has the rules.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bootstrap/kvs/board.hpp"
#include "bootstrap/launchers/pmi_line.hpp"

namespace unisono::bootstrap {

class PmiBoard : public Board {
 public:
  // `shared`: there is an MPI library in this process, which speaks over the same connection. It
  // says who it is and takes leave itself; in between, each of both asks and waits for its answer.
  static base::Result<std::unique_ptr<Board>> open(const BoardOptions& options, bool shared);
  ~PmiBoard() override;

  base::Status put(std::string_view key, std::string_view note) override;
  base::Status fence() override;
  base::Result<std::string> get(int rank, std::string_view key) override;

 private:
  PmiBoard(const BoardOptions& options, bool shared) : options_(options), shared_(shared) {}
  base::Status begin();
  void take_leave();
  // Sends a line; the answer has to be `expected`, with rc=0 if it has a return code.
  base::Result<PmiLine> ask(const std::string& line, std::string_view expected);
  base::Status send(std::string_view line);
  base::Result<std::string> receive();
  base::Error trouble(base::Code code, std::string_view what) const;

  const BoardOptions options_;
  const bool shared_;
  bool broken_ = false;  // nothing more can be said to the launcher
  std::string space_;    // name of the job's key-value space
};

}  // namespace unisono::bootstrap
