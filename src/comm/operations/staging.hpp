// SPDX-License-Identifier: BSD-3-Clause
// Staging: the job memory in which a rank's operations leave blocks for their receivers. One block
// is kept for the next operation, because to get pages costs more than to fill them. One per
// communicator, which it does not outlive; one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "memory/job_memory.hpp"

namespace unisono::comm {

class Staging {
 public:
  struct Block {
    std::int64_t offset = 0, bytes = 0;  // in job memory; offset 0: none
  };

  // The memory outlives it.
  explicit Staging(memory::JobMemory& memory) : memory_(memory) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // A block of at least so many bytes. The error says why there is none.
  base::Result<Block> take(std::int64_t bytes);
  // Its receivers have read it.
  void give_back(const Block& block);
  // Its operation failed: its receivers may still read it, until the communicator ends.
  void strand(const Block& block) { stranded_.push_back(block); }
  // At the end of the communicator.
  void release_all();

 private:
  void release_spare();

  memory::JobMemory& memory_;
  Block spare_;
  std::vector<Block> stranded_;
};

}  // namespace unisono::comm
