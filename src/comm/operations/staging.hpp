// SPDX-License-Identifier: BSD-3-Clause
// Staging: the job memory in which a rank's operations leave blocks for their receivers. Blocks are
// kept for later operations, because to get pages costs more than to fill them. One per
// communicator, which it does not outlive; one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "comm/operations/staging_ring.hpp"
#include "engine/size_queue.hpp"
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

  // The references outlive it. `size_queue`: of the operations whose blocks last.
  Staging(memory::JobMemory& memory, engine::SizeQueue& size_queue,
          std::atomic<std::int64_t>& first_stranded);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // A block of at least so many bytes. `round`: if not 0, successive blocks go round so many bytes.
  // The error says why there is none.
  base::Result<Block> take(std::int64_t bytes, std::int64_t round);
  // Its receivers have read it.
  void give_back(const Block& block);
  // They will have read it when all members have completed operation `sequence` of the queue.
  void give_back_after(const Block& block, std::uint64_t sequence);
  // Its operation failed: its receivers may still read it.
  void abandon(const Block& block);
  // At the end of the communicator. Blocks that may still be read are stranded.
  void release_spare();
  StrandedBlocks& stranded() { return stranded_; }

 private:
  // A block that no operation of this rank uses.
  struct Spare {
    Block block;
    std::uint64_t sequence = 0;  // of the operation that it waits for; 0: none
  };

  bool in_arena(const Block& block) const {
    return block.offset >= arena_.offset && block.offset < arena_.offset + arena_.bytes;
  }
  bool is_free(const Spare& spare) const {
    return spare.sequence == 0 || size_queue_.was_completed_by_all_here(spare.sequence);
  }
  Block take_from_ring(std::int64_t bytes, std::int64_t round);
  Spare* find_free(std::int64_t bytes);
  Block cut_from_arena(std::int64_t bytes);
  base::Result<Block> allocate(std::int64_t bytes);
  void make_room(std::int64_t bytes);
  void release(const Block& block);
  void release_ring();

  memory::JobMemory& memory_;
  engine::SizeQueue& size_queue_;
  StrandedBlocks stranded_;
  std::vector<Spare> spare_;
  std::int64_t spare_bytes_ = 0;  // without those of the arena
  // Short blocks are cut from it, for good. Blocks of the job's memory begin at multiples of its
  // segments, so equal ones would share the same few sets of a cache.
  Block arena_;
  std::int64_t cut_bytes_ = 0;
  bool arena_is_stranded_ = false;
  StagingRing ring_;
  bool ring_is_stranded_ = false, ring_was_refused_ = false;
};

}  // namespace unisono::comm
