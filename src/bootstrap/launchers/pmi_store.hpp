// SPDX-License-Identifier: BSD-3-Clause
// PmiStore: PMI's key-value store. A client of version 1 of the wire protocol, over the connection
// that the launcher has left in PMI_FD. Rules: key_value_store.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bootstrap/launchers/pmi_line.hpp"
#include "bootstrap/launchers/stores.hpp"

namespace unisono::bootstrap {

class PmiStore : public KeyValueStore {
 public:
  // `with_mpi`: there is an MPI library in this process, which uses the same connection. It sends
  // init and finalize itself; in between, both send a request only after the answer to the last.
  static base::Result<std::unique_ptr<KeyValueStore>> open(const StoreOptions& options,
                                                           bool with_mpi);
  ~PmiStore() override;

  base::Status put(std::string_view key, std::string_view value) override;
  base::Status fence() override;
  base::Result<std::string> get(int rank, std::string_view key) override;

 private:
  PmiStore(const StoreOptions& options, bool with_mpi) : options_(options), with_mpi_(with_mpi) {}
  base::Status init();
  void finalize();
  // Sends a line; the answer has to be `expected`, with rc=0 if it has a return code.
  base::Result<PmiLine> ask(const std::string& line, std::string_view expected);
  base::Status send(std::string_view line);
  base::Result<std::string> receive();
  base::Error error(base::Code code, std::string_view what) const;

  const StoreOptions options_;
  const bool with_mpi_;
  bool broken_ = false;  // the launcher gets no further request
  std::string space_;    // name of the job's key-value space
};

}  // namespace unisono::bootstrap
