// SPDX-License-Identifier: BSD-3-Clause
// The global operator new, which can be made to fail: for programs that test a lack of memory. It
// defines the operators, so exactly one source of a program includes it. Each thread counts alone.
#pragma once

#include <cstdlib>
#include <new>

namespace unisono::harness {

// Until one throws; negative: none does.
inline thread_local long left_allocations = -1;
inline thread_local long allocations = 0;

}  // namespace unisono::harness

void* operator new(std::size_t bytes) {
  using namespace unisono::harness;
  ++allocations;
  if (left_allocations == 0) {
    left_allocations = -1;
    throw std::bad_alloc();
  }
  if (left_allocations > 0) --left_allocations;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
// With all forms that the ones above are not made of: memory ends where it came from.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t& none) noexcept {
  return operator new(bytes, none);
}
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
