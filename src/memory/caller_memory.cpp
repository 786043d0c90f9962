// SPDX-License-Identifier: BSD-3-Clause
#include "memory/caller_memory.hpp"

#include <algorithm>
#include <utility>

namespace unisono::memory {

base::Result<void*> CallerMemory::allocate(JobMemory& memory, std::int64_t bytes) {
  bytes = std::max<std::int64_t>(bytes, 1);
  UNISONO_ASSIGN(const std::int64_t offset, memory.allocate(bytes));
  if (const base::Status committed = memory.commit(offset, bytes, "a block of the program");
      !committed) {
    memory.release(offset, bytes);
    return committed.error();
  }
  void* const block = memory.at(offset);
  const std::lock_guard lock(mutex_);
  blocks_[block] = {memory.shared_from_this(), offset, bytes};
  return block;
}

bool CallerMemory::free(void* block) {
  Block found;
  {
    const std::lock_guard lock(mutex_);
    const auto at = blocks_.find(block);
    if (at == blocks_.end()) return false;
    found = std::move(at->second);
    blocks_.erase(at);
  }
  found.memory->release(found.offset, found.bytes);
  return true;
}

}  // namespace unisono::memory
