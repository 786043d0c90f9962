// SPDX-License-Identifier: BSD-3-Clause
// How many bytes of a job's memory file are given out: not free, and not kept for a later
// communicator. For tests only.
#pragma once

#include <cstdint>

#include "memory/job_memory.hpp"

namespace unisono::test {

inline std::int64_t bytes_in_use(const memory::MemoryHeader& header) {
  std::int64_t bytes = header.used_end;
  for (std::uint32_t i = 0; i < header.free_count; ++i) bytes -= header.free[i].bytes;
  for (const auto& kept : header.kept) {
    if (kept.offset != 0) bytes -= kept.bytes;
  }
  return bytes;
}

}  // namespace unisono::test
