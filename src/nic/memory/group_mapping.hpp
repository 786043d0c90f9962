// SPDX-License-Identifier: BSD-3-Clause
// GroupMapping: a group's two maps (slots and blocks, tables.h) in this process's memory. The
// loader made them, or another process passed their descriptors. The memory exists as long as any
// process maps it, also after the program has forgotten the group. Made by one thread; the memory
// may be used by any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "nic/program/tables.h"

namespace unisono::nic {

// The memory shared by the program and a group's process, as mapped in this process.
struct GroupMemory {
  unisono_nic_slot* slots = nullptr;
  unisono_nic_block* blocks = nullptr;
};

// The same memory as maps, for another process, and the rings on which it sleeps (wake_ring.hpp). A
// map belongs to one group, so its receiver can neither read nor write another group's memory.
struct GroupMaps {
  int slots = -1;
  int blocks = -1;
  std::vector<int> wakes;  // by waiter
};

// How many slots and blocks a row's group has.
inline std::uint32_t slots_of(const unisono_nic_row& row) { return row.depth; }
inline std::uint32_t blocks_of(const unisono_nic_row& row) {
  return row.depth * unisono_nic_blocks(&row);
}
// The size of all of them together.
std::size_t memory_bytes(const unisono_nic_row& row);

class GroupMapping {
 public:
  GroupMapping() = default;
  GroupMapping(const GroupMapping&) = delete;
  GroupMapping& operator=(const GroupMapping&) = delete;
  ~GroupMapping();

  // Call it once. The descriptors may be closed afterwards.
  base::Status open(const unisono_nic_row& row, const GroupMaps& maps);

  const GroupMemory& memory() const { return memory_; }

 private:
  GroupMemory memory_;
  std::size_t slots_bytes_ = 0;
  std::size_t blocks_bytes_ = 0;
};

}  // namespace unisono::nic
