// SPDX-License-Identifier: BSD-3-Clause
#include "nic/memory/group_mapping.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "nic/memory/wake_ring.hpp"

namespace unisono::nic {
namespace {

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

base::Result<void*> map_memory(const char* name, int map, std::size_t bytes) {
  void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
  if (start != MAP_FAILED) return start;
  return base::Error{base::Code::system,
                     fmt::format("NIC program: map {} bytes of a group's {}: {}", bytes, name,
                                 std::strerror(errno))};
}

}  // namespace

std::size_t memory_bytes(const unisono_nic_row& row) {
  return whole_pages(slots_of(row) * sizeof(unisono_nic_slot)) +
         whole_pages(blocks_of(row) * sizeof(unisono_nic_block)) + row.waiters * wake_ring_bytes();
}

base::Status GroupMapping::open(const unisono_nic_row& row, const GroupMaps& maps) {
  const std::size_t slots_bytes = slots_of(row) * sizeof(unisono_nic_slot);
  const std::size_t blocks_bytes = blocks_of(row) * sizeof(unisono_nic_block);
  UNISONO_ASSIGN(void* const slots, map_memory("slots", maps.slots, slots_bytes));
  memory_.slots = static_cast<unisono_nic_slot*>(slots);
  slots_bytes_ = slots_bytes;
  UNISONO_ASSIGN(void* const blocks, map_memory("blocks", maps.blocks, blocks_bytes));
  memory_.blocks = static_cast<unisono_nic_block*>(blocks);
  blocks_bytes_ = blocks_bytes;
  return base::success();
}

GroupMapping::~GroupMapping() {
  if (memory_.slots != nullptr) munmap(memory_.slots, slots_bytes_);
  if (memory_.blocks != nullptr) munmap(memory_.blocks, blocks_bytes_);
}

}  // namespace unisono::nic
