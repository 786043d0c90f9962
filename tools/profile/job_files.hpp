// SPDX-License-Identifier: BSD-3-Clause
// JobFiles: the files FILE.RANK that the ranks of one job write on this host. An earlier job with
// the same FILE may have had more ranks, whose files are still there; they are told apart by the
// time at which they were written. One thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace unisono::tools {

class JobFiles {
 public:
  // Make it before the job begins.
  explicit JobFiles(std::string file);

  // Those that have been written since, in no order.
  std::vector<std::string> written() const;

 private:
  using Times = std::map<std::string, std::filesystem::file_time_type>;
  Times find() const;

  std::string file_;
  Times before_;
};

}  // namespace unisono::tools
