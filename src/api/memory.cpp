// SPDX-License-Identifier: BSD-3-Clause
// Entry points of memory that all ranks of a host can read. An allocation is of this rank alone, so
// its errors do not end the communicator.
#include "memory/caller_memory.hpp"

#include <fmt/format.h>

#include "api/error.hpp"
#include "api/objects.hpp"

namespace unisono::api {
namespace {

// Never destroyed: objects that are destroyed later may still free their blocks.
memory::CallerMemory& caller_memory() {
  static auto* const kMemory = new memory::CallerMemory;
  return *kMemory;
}

}  // namespace
}  // namespace unisono::api

extern "C" {

using unisono::api::fail;
using unisono::base::Code;

int unisono_memory_alloc(unisono_comm_t comm, size_t bytes, void** memory) try {
  using namespace unisono::api;
  if (memory == nullptr) return fail(Code::argument, "unisono_memory_alloc: memory is NULL");
  *memory = nullptr;
  const Comm* found = find_comm(comm);
  if (found == nullptr) return fail(bad_comm("unisono_memory_alloc", comm));
  if (bytes > static_cast<size_t>(INT64_MAX)) {
    return fail(Code::resources, fmt::format("unisono_memory_alloc: {} bytes are more than the "
                                             "job's memory file can have",
                                             bytes));
  }
  const auto block =
      caller_memory().allocate(found->owner->job->memory(), static_cast<std::int64_t>(bytes));
  if (!block) return fail("unisono_memory_alloc", block.error());
  *memory = *block;
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_memory_alloc", thrown);
}

int unisono_memory_free(void* memory) try {
  using namespace unisono::api;
  if (memory == nullptr) return UNISONO_OK;
  if (is_forked_child()) {
    return fail(Code::state,
                "unisono_memory_free: this process is a child that a rank has forked; the memory "
                "is the parent's, which frees it");
  }
  if (!caller_memory().free(memory)) {
    return fail(Code::argument,
                "unisono_memory_free: this is no memory of unisono_memory_alloc, or it was freed "
                "before");
  }
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_memory_free", thrown);
}

}  // extern "C"
