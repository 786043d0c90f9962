// SPDX-License-Identifier: BSD-3-Clause
// Staging: the job memory in which a rank's operations leave blocks for their receivers. One block
// is kept for the next operation, because to get pages costs more than to fill them. One per
// communicator, which it does not outlive; one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.hpp"
#include "memory/job_memory.hpp"

namespace unisono::comm {

// Blocks of operations that failed, of all members of one host. A member that is late in such an
// operation may still read them, though their owner has ended the communicator. So no block is
// given back before the last member of the host has. The list lies in the communicator's segment,
// and its links behind the blocks. Any thread.
class StrandedBlocks {
 public:
  // `first`: 0 where there are none. The references outlive it.
  StrandedBlocks(memory::JobMemory& memory, std::atomic<std::int64_t>& first)
      : memory_(memory), first_(first) {}

  // Blocks are longer by so many bytes than what their owner writes.
  static constexpr std::int64_t kLinkBytes = 16;

  // `bytes`: a multiple of 8, without the link.
  void add(std::int64_t offset, std::int64_t bytes);
  // By the last member, while nobody adds any.
  void release_all();

 private:
  struct Link {
    std::int64_t next, bytes;
  };
  static_assert(sizeof(Link) == kLinkBytes);

  memory::JobMemory& memory_;
  std::atomic<std::int64_t>& first_;  // of the links
};

class Staging {
 public:
  struct Block {
    std::int64_t offset = 0, bytes = 0;  // in job memory; offset 0: none
  };

  // The references outlive it.
  Staging(memory::JobMemory& memory, std::atomic<std::int64_t>& first_stranded)
      : memory_(memory), stranded_(memory, first_stranded) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // A block of at least so many bytes. The error says why there is none.
  base::Result<Block> take(std::int64_t bytes);
  // Its receivers have read it.
  void give_back(const Block& block);
  // Its operation failed: its receivers may still read it.
  void strand(const Block& block) { stranded_.add(block.offset, block.bytes); }
  // At the end of the communicator.
  void release_spare();
  StrandedBlocks& stranded() { return stranded_; }

 private:
  void release(const Block& block);

  memory::JobMemory& memory_;
  StrandedBlocks stranded_;
  Block spare_;
};

}  // namespace unisono::comm
