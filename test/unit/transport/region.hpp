// SPDX-License-Identifier: BSD-3-Clause
// Region: memory of a rank that others write to, in tests. Its pages take memory only when touched,
// like a job's.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace unisono::transport {

inline constexpr std::size_t kRegionBytes = std::size_t{24} << 20;

class Region {
 public:
  Region()
      : memory_(mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Region() { munmap(memory_, kRegionBytes); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_;
};

}  // namespace unisono::transport
