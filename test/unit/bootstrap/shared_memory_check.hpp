// SPDX-License-Identifier: BSD-3-Clause
// For tests of the bootstrap: proof that the ranks of a job hold the same memory file.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "bootstrap/job_info.hpp"

namespace unisono::bootstrap {

// Adds 1 to the first word of the job's memory and waits for it to become `ranks`.
inline bool share_memory(const JobInfo& info) {
  void* memory =
      mmap(nullptr, info.memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, info.memory.get(), 0);
  if (memory == MAP_FAILED) return false;
  auto* word = static_cast<std::atomic<int>*>(memory);
  word->fetch_add(1);
  const std::int64_t deadline_ns = base::now_ns() + 30 * base::kSecond;
  while (word->load() < info.ranks && base::now_ns() < deadline_ns) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const bool met = word->load() == info.ranks;
  munmap(memory, info.memory_bytes);
  return met;
}

}  // namespace unisono::bootstrap
