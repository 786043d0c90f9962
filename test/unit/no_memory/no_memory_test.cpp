// SPDX-License-Identifier: BSD-3-Clause
// The n-th allocation of a rank inside an entry point throws std::bad_alloc: the call returns an
// error, or was not concerned, and the other ranks do not wait for ever. The operator new of this
// program counts the allocations of one thread.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <string>
#include <utility>

#include "api/error.hpp"
#include "harness/failing_new.hpp"
#include "harness/threads.hpp"

namespace unisono::harness::no_memory_test {
namespace {

using Call = std::function<int(ThreadRank&)>;

// How rank 1 fares in a call that rank 0 cannot make.
enum class Others : std::uint8_t { not_concerned, return_, get_an_error };

// Rank 0 makes the call without the memory for its n-th allocation, until it needs no more than n.
// It stays in the job until the other rank has returned, whose wait would else end with it.
void throw_at_each(const Call& call, Others others) {
  bool threw = true;
  for (long number = 0; threw && !testing::Test::HasFailure(); ++number) {
    SCOPED_TRACE("allocation " + std::to_string(number));
    std::atomic<bool> failed{false};
    std::barrier<> called(2);
    run_threads(2, [&](ThreadRank& self) {
      if (self.rank == 0) left_allocations = number;
      const int error = call(self);
      if (self.rank == 0) {
        threw = left_allocations < 0;
        left_allocations = -1;
        failed = error != UNISONO_OK;
        EXPECT_TRUE(error == UNISONO_OK || error == UNISONO_ERROR_RESOURCES)
            << unisono_error_name(error) << ": " << unisono_last_error();
      }
      called.arrive_and_wait();
      if (self.rank != 0 && others == Others::get_an_error) {
        EXPECT_EQ(error != UNISONO_OK, failed.load())
            << unisono_error_name(error) << ": " << unisono_last_error();
      }
      self.finalize();
    });
  }
}

// Makes a communicator by `make` and uses it once: it must not exist for one rank only.
template <class Make>
int make_and_use(const Make& make) {
  unisono_comm_t made = nullptr;
  const int error = make(&made);
  if (error != UNISONO_OK) {
    EXPECT_EQ(made, nullptr);
    return error;
  }
  return unisono_barrier(made);
}

TEST(NoMemory, AFirstCallOfAShapeReturnsAnError) {
  throw_at_each(
      [](ThreadRank& self) {
        const double in[100] = {};
        double out[100];
        return unisono_allreduce(in, out, 100, UNISONO_FLOAT64, UNISONO_SUM, self.world);
      },
      Others::return_);
}

TEST(NoMemory, AStartReturnsAnError) {
  throw_at_each(
      [](ThreadRank& self) {
        unisono_request_t request = nullptr;
        const int error = unisono_barrier_start(self.world, &request);
        return error == UNISONO_OK ? unisono_wait(&request) : error;
      },
      Others::return_);
}

TEST(NoMemory, APlanReturnsAnError) {
  throw_at_each(
      [](ThreadRank& self) {
        unisono_plan_t plan = nullptr;
        return unisono_barrier_plan(self.world, &plan);
      },
      Others::not_concerned);
}

// The other rank cannot have completed the barrier: this one throws before it has taken part.
TEST(NoMemory, AStartOfAPlanReturnsAnError) {
  throw_at_each(
      [](ThreadRank& self) {
        const long left = std::exchange(left_allocations, -1);  // only the start lacks memory
        unisono_plan_t plan = nullptr;
        EXPECT_TRUE(succeeded(unisono_barrier_plan(self.world, &plan)));
        left_allocations = left;
        int error = unisono_plan_start(plan);
        const long rest = std::exchange(left_allocations, -1);
        if (error == UNISONO_OK) error = unisono_plan_wait(plan);
        left_allocations = rest;
        return error;
      },
      Others::get_an_error);
}

TEST(NoMemory, ADuplicateReturnsAnErrorToAll) {
  throw_at_each(
      [](ThreadRank& self) {
        return make_and_use(
            [&](unisono_comm_t* made) { return unisono_comm_dup(self.world, made); });
      },
      Others::get_an_error);
}

TEST(NoMemory, ASplitReturnsAnErrorToAll) {
  throw_at_each(
      [](ThreadRank& self) {
        return make_and_use(
            [&](unisono_comm_t* made) { return unisono_comm_split(self.world, 0, 0, made); });
      },
      Others::get_an_error);
}

TEST(NoMemory, AListReturnsAnErrorToAll) {
  throw_at_each(
      [](ThreadRank& self) {
        return make_and_use([&](unisono_comm_t* made) {
          const int ranks[] = {0, 1};
          return unisono_comm_from_list(self.world, ranks, 2, made);
        });
      },
      Others::get_an_error);
}

TEST(NoMemory, AFailedCallKeepsNoHandle) {
  throw_at_each(
      [](ThreadRank& self) {
        unisono_comm_t made = nullptr;
        const int error = unisono_comm_dup(self.world, &made);
        if (error != UNISONO_OK) return error;
        unisono_request_t request = nullptr;
        const int started = unisono_barrier_start(made, &request);
        if (started == UNISONO_OK) return unisono_wait(&request);
        EXPECT_TRUE(succeeded(unisono_comm_free(made)));  // no request is outstanding
        return started;
      },
      Others::return_);
}

TEST(NoMemory, EntryPointsThatAskReturnAnError) {
  throw_at_each(
      [](ThreadRank&) {
        unisono_threads_t threads = nullptr;
        const int error = unisono_threads_create(2, &threads);
        if (error == UNISONO_OK) unisono_threads_free(threads);
        return error;
      },
      Others::not_concerned);
}

}  // namespace
}  // namespace unisono::harness::no_memory_test
