// SPDX-License-Identifier: BSD-3-Clause
// The n-th allocation of a rank inside an entry point throws std::bad_alloc: the call returns an
// error, or was not concerned, and the other ranks do not wait for ever. The operator new of this
// program counts the allocations of one thread.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <new>
#include <string>

#include "api/error.hpp"
#include "harness/threads.hpp"

namespace {
// Until one throws; negative: none does.
thread_local long left_allocations = -1;
}  // namespace

void* operator new(std::size_t bytes) {
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

namespace unisono::harness::no_memory_test {
namespace {

using Call = std::function<int(ThreadRank&)>;

// Rank 0 makes the call without the memory for its n-th allocation, until it needs no more than n.
void throw_at_each(const Call& call) {
  bool threw = true;
  for (long number = 0; threw && !testing::Test::HasFailure(); ++number) {
    SCOPED_TRACE("allocation " + std::to_string(number));
    run_threads(2, [&](ThreadRank& self) {
      if (self.rank == 0) left_allocations = number;
      const int error = call(self);
      if (self.rank == 0) {
        threw = left_allocations < 0;
        left_allocations = -1;
        EXPECT_TRUE(error == UNISONO_OK || error == UNISONO_ERROR_RESOURCES)
            << unisono_error_name(error) << ": " << unisono_last_error();
      }
      self.finalize();
    });
  }
}

TEST(NoMemory, AFirstCallOfAShapeReturnsAnError) {
  throw_at_each([](ThreadRank& self) {
    const double in[100] = {};
    double out[100];
    return unisono_allreduce(in, out, 100, UNISONO_FLOAT64, UNISONO_SUM, self.world);
  });
}

TEST(NoMemory, AStartReturnsAnError) {
  throw_at_each([](ThreadRank& self) {
    unisono_request_t request = nullptr;
    const int error = unisono_barrier_start(self.world, &request);
    return error == UNISONO_OK ? unisono_wait(&request) : error;
  });
}

TEST(NoMemory, APlanReturnsAnError) {
  throw_at_each([](ThreadRank& self) {
    unisono_plan_t plan = nullptr;
    return unisono_barrier_plan(self.world, &plan);
  });
}

TEST(NoMemory, EntryPointsThatAskReturnAnError) {
  throw_at_each([](ThreadRank&) {
    unisono_threads_t threads = nullptr;
    const int error = unisono_threads_create(2, &threads);
    if (error == UNISONO_OK) unisono_threads_free(threads);
    return error;
  });
}

}  // namespace
}  // namespace unisono::harness::no_memory_test
