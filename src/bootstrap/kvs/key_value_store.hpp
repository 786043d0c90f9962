// SPDX-License-Identifier: BSD-3-Clause
// KeyValueStore: the store that a launcher keeps for the ranks of a job (PMI, PMIx). Each rank puts
// values, and after a fence all ranks can read them. Whether other processes can read them depends
// on the launcher, and values travel in the clear: nothing secret belongs there. Control path;
// blocks, with a deadline wherever it waits for other ranks. One thread at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace unisono::bootstrap {

class KeyValueStore {
 public:
  // A value of this size fits with every launcher (a line of PMI has 1024 bytes).
  static constexpr std::size_t kMostValueBytes = 768;

  KeyValueStore() = default;
  virtual ~KeyValueStore() = default;  // finalizes: tells the launcher that the rank is done
  KeyValueStore(const KeyValueStore&) = delete;
  KeyValueStore& operator=(const KeyValueStore&) = delete;

  // `key`: letters and digits. `value`: printable characters without blanks. Each key once.
  virtual base::Status put(std::string_view key, std::string_view value) = 0;
  // Returns when all ranks of the job have called it. Errors: timeout (some have not), rank_lost
  // (the launcher has ended), state (the launcher breaks its protocol).
  virtual base::Status fence() = 0;
  // A value that a rank has put before the last fence. Errors: those of fence(); state, if the rank
  // has put none.
  virtual base::Result<std::string> get(int rank, std::string_view key) = 0;
};

}  // namespace unisono::bootstrap
