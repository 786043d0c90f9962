// SPDX-License-Identifier: BSD-3-Clause
// CallerMemory: blocks of the job's memory that belong to the program. A block keeps the mapping of
// its job, so it stays valid after the job has ended. Control path; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/result.hpp"
#include "memory/job_memory.hpp"

namespace unisono::memory {

class CallerMemory {
 public:
  // A zeroed block, aligned to kSegmentAlignment. Error: Code::resources.
  base::Result<void*> allocate(JobMemory& memory, std::int64_t bytes);
  // False: it is no block, or was freed already.
  bool free(void* block);

 private:
  struct Block {
    std::shared_ptr<JobMemory> memory;
    std::int64_t offset, bytes;
  };

  std::mutex mutex_;
  std::map<void*, Block> blocks_;
};

}  // namespace unisono::memory
