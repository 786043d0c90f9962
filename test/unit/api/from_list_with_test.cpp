// SPDX-License-Identifier: BSD-3-Clause
// unisono_comm_from_list_with (list_derivation): communicators of some ranks of a job, over an
// exchange of theirs. Results, several at once in threads, hundreds without a trace, and a failure
// at every step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "harness/fake_exchange.hpp"
#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"
#include "unisono/unisono.hpp"

namespace unisono::harness::from_list_with_test {
namespace {

constexpr int kSteps = 2;  // of the exchange

// One rank's call; `place` is its place in the list.
int make(unisono_comm_t parent, const std::vector<int>& list, FakeExchange& exchange, int place,
         unisono_comm_t* made, int fails_everywhere = 0) {
  FakeExchange::End end = exchange.end(place, fails_everywhere);
  const unisono_exchange_t functions = end.functions();
  return unisono_comm_from_list_with(parent, list.data(), static_cast<int>(list.size()), &functions,
                                     made);
}

int place_in(const std::vector<int>& list, int rank) {
  const auto found = std::ranges::find(list, rank);
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

// The members of the world in the communicator's order, as its own allgather says.
std::vector<int> members(unisono_comm_t comm, int world_rank, std::size_t size) {
  std::vector<int> all(size, -1);
  EXPECT_TRUE(succeeded(unisono_allgather(&world_rank, all.data(), 1, UNISONO_INT32, comm)));
  return all;
}

std::vector<int> everyone(int ranks) {
  std::vector<int> list(static_cast<std::size_t>(ranks));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

class FromListWith : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, FromListWith, testing::Values(1, 2, 3, 5, 9));

TEST_P(FromListWith, HasTheListsOrderAndNeedsNoOtherRank) {
  std::vector<int> list;
  for (int rank = GetParam() - 1; rank >= 0; rank -= 2) list.push_back(rank);
  FakeExchange exchange(static_cast<int>(list.size()));
  run_threads(GetParam(), [&](ThreadRank& self) {
    const int place = place_in(list, self.rank);
    if (place < 0) return;
    unisono_comm_t made = nullptr;
    ASSERT_TRUE(succeeded(make(self.world, list, exchange, place, &made)));
    int rank = -1;
    EXPECT_TRUE(succeeded(unisono_comm_rank(made, &rank)));
    EXPECT_EQ(rank, place);
    EXPECT_EQ(members(made, self.rank, list.size()), list);
    EXPECT_TRUE(succeeded(unisono_comm_free(made)));
  });
}

// Each thread of a rank makes a communicator, while another one uses the world.
TEST(FromListWithThreads, AtOnceFromOneParent) {
  constexpr int kRanks = 3, kThreads = 4;
  const std::vector<int> list = everyone(kRanks);
  std::vector<std::unique_ptr<FakeExchange>> exchanges;
  for (int t = 0; t < kThreads; ++t) exchanges.push_back(std::make_unique<FakeExchange>(kRanks));
  run_threads(kRanks, [&](ThreadRank& self) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        unisono_comm_t made = nullptr;
        ASSERT_TRUE(succeeded(
            make(self.world, list, *exchanges[static_cast<std::size_t>(t)], self.rank, &made)));
        for (int i = 0; i < 50; ++i) EXPECT_EQ(members(made, self.rank, list.size()), list);
        EXPECT_TRUE(succeeded(unisono_comm_free(made)));
      });
    }
    for (int i = 0; i < 50; ++i) EXPECT_EQ(members(self.world, self.rank, list.size()), list);
    for (std::thread& thread : threads) thread.join();
  });
}

std::int64_t shared_pages() {
  std::ifstream file("/proc/self/statm");
  std::int64_t size = 0, resident = 0, shared = 0;
  file >> size >> resident >> shared;
  return shared;
}

TEST(FromListWithMany, HundredsLeaveNoMemory) {
  constexpr int kRanks = 2, kMany = 400, kFirst = 20;
  constexpr std::int64_t kSlackPages = 4096;  // a few communicators have as many
  const std::vector<int> list = everyone(kRanks);
  std::vector<std::unique_ptr<FakeExchange>> exchanges;
  for (int i = 0; i < kMany; ++i) exchanges.push_back(std::make_unique<FakeExchange>(kRanks));
  run_threads(kRanks, [&](ThreadRank& self) {
    std::int64_t before = 0;
    for (int i = 0; i < kMany; ++i) {
      unisono_comm_t made = nullptr;
      ASSERT_TRUE(succeeded(
          make(self.world, list, *exchanges[static_cast<std::size_t>(i)], self.rank, &made)));
      EXPECT_EQ(members(made, self.rank, list.size()), list);
      // Memory is used again: calls of all lengths get what belongs to them.
      constexpr std::size_t kCounts[] = {1, 100, 5000, 70'000};
      std::vector<double> input(kCounts[i % 4], i + self.rank), output(input.size(), -1);
      EXPECT_TRUE(succeeded(unisono_allreduce(input.data(), output.data(),
                                              static_cast<std::int64_t>(input.size()),
                                              UNISONO_FLOAT64, UNISONO_SUM, made)));
      EXPECT_EQ(output, std::vector<double>(input.size(), 2 * i + 1));
      EXPECT_TRUE(succeeded(unisono_comm_free(made)));
      if (i == kFirst) before = shared_pages();
    }
    EXPECT_LE(shared_pages(), before + kSlackPages);
  });
}

// Rank 1's exchange fails in a step. Nobody hangs: a rank has an error, or a communicator that
// fails.
TEST(FromListWithFailures, AFailingExchangeIsAnErrorForAll) {
  constexpr int kRanks = 3;
  const std::vector<int> list = everyone(kRanks);
  for (int failing = 1; failing <= kSteps; ++failing) {
    SCOPED_TRACE("step " + std::to_string(failing));
    FakeExchange* whole = nullptr;
    FakeExchange exchange(kRanks, [&](int rank, int step, std::span<std::byte>) {
      if (rank != 1 || step != failing) return 0;
      whole->break_now();
      return 1;
    });
    whole = &exchange;
    run_threads(kRanks, [&](ThreadRank& self) {
      unisono_comm_t made = nullptr;
      int code = make(self.world, list, exchange, self.rank, &made);
      if (self.rank == 1) {
        EXPECT_EQ(code, UNISONO_ERROR_SYSTEM);
      }
      if (code == UNISONO_OK) {
        // The last step was this one's last: the communicator of the others fails.
        EXPECT_EQ(failing, kSteps);
        code = unisono_barrier(made);
        EXPECT_TRUE(succeeded(unisono_comm_free(made)));
      }
      EXPECT_NE(code, UNISONO_OK);
      EXPECT_EQ(members(self.world, self.rank, list.size()), list);  // still good
    });
  }
}

// Where the exchange never fails at some ranks only, one step is enough on one host.
TEST(FromListWithOneStep, AnExchangeThatFailsEverywhereIsCalledOnce) {
  constexpr int kRanks = 3;
  const std::vector<int> list = everyone(kRanks);
  FakeExchange exchange(kRanks), other(kRanks);
  run_threads(kRanks, [&](ThreadRank& self) {
    unisono_comm_t made = nullptr;
    ASSERT_TRUE(succeeded(make(self.world, list, exchange, self.rank, &made, 1)));
    EXPECT_EQ(members(made, self.rank, list.size()), list);
    EXPECT_TRUE(succeeded(unisono_comm_free(made)));
    ASSERT_TRUE(succeeded(make(self.world, list, other, self.rank, &made)));
    EXPECT_TRUE(succeeded(unisono_comm_free(made)));
  });
  EXPECT_EQ(exchange.arrived(1), kRanks);
  EXPECT_EQ(exchange.arrived(2), 0);
  EXPECT_EQ(other.arrived(kSteps), kRanks);
}

TEST(FromListWithOneStep, OneThatFailsLeavesNoMemory) {
  constexpr int kRanks = 2, kMany = 600, kFirst = 20;
  constexpr std::int64_t kSlackPages = 4096;
  const std::vector<int> list = everyone(kRanks);
  const auto fail = [](int, int, std::span<std::byte>) { return 1; };
  std::vector<std::unique_ptr<FakeExchange>> exchanges;
  for (int i = 0; i < kMany; ++i) exchanges.push_back(std::make_unique<FakeExchange>(kRanks, fail));
  run_threads(kRanks, [&](ThreadRank& self) {
    std::int64_t before = 0;
    for (int i = 0; i < kMany; ++i) {
      unisono_comm_t made = nullptr;
      EXPECT_EQ(
          make(self.world, list, *exchanges[static_cast<std::size_t>(i)], self.rank, &made, 1),
          UNISONO_ERROR_SYSTEM);
      EXPECT_EQ(made, nullptr);
      if (i == kFirst) before = shared_pages();
    }
    EXPECT_LE(shared_pages(), before + kSlackPages);
  });
}

TEST(FromListWithFailures, DifferentListsAreAnErrorForAll) {
  constexpr int kRanks = 2;
  FakeExchange exchange(kRanks);
  run_threads(kRanks + 1, [&](ThreadRank& self) {
    if (self.rank == 2) return;
    const std::vector<int> list = self.rank == 0 ? std::vector{0, 1} : std::vector{2, 1};
    unisono_comm_t made = nullptr;
    EXPECT_TRUE(failed(make(self.world, list, exchange, self.rank, &made), UNISONO_ERROR_ARGUMENT,
                       {"different lists"}));
    EXPECT_EQ(made, nullptr);
  });
}

TEST(FromListWithFailures, ArgumentsOfOneRank) {
  constexpr int kRanks = 2;
  FakeExchange exchange(kRanks);
  run_threads(kRanks, [&](ThreadRank& self) {
    FakeExchange::End end = exchange.end(self.rank);
    const unisono_exchange_t good = end.functions();
    const int own[] = {self.rank}, other[] = {1 - self.rank}, twice[] = {0, 0}, both[] = {0, 1};
    unisono_comm_t made = nullptr;
    const auto call = [&](const int* list, int count, const unisono_exchange_t* functions) {
      return unisono_comm_from_list_with(self.world, list, count, functions, &made);
    };
    EXPECT_TRUE(failed(call(own, 1, nullptr), UNISONO_ERROR_ARGUMENT, {"exchange"}));
    EXPECT_TRUE(failed(call(other, 1, &good), UNISONO_ERROR_ARGUMENT, {"not listed"}));
    EXPECT_TRUE(failed(call(twice, 2, &good), UNISONO_ERROR_ARGUMENT, {"twice"}));
    EXPECT_TRUE(failed(call(nullptr, 1, &good), UNISONO_ERROR_ARGUMENT, {"NULL"}));
    EXPECT_TRUE(failed(unisono_comm_from_list_with(nullptr, own, 1, &good, &made),
                       UNISONO_ERROR_STATE, {"NULL"}));
    // Rank 1 has no place for the result, which both hear.
    EXPECT_TRUE(failed(
        unisono_comm_from_list_with(self.world, both, 2, &good, self.rank == 1 ? nullptr : &made),
        UNISONO_ERROR_ARGUMENT, {"result is NULL"}));
    EXPECT_EQ(members(self.world, self.rank, 2), everyone(2));
  });
}

TEST(FromListWithHpp, TakesAFunctionAndThrowsItsExceptions) {
  constexpr int kRanks = 2;
  const std::vector<int> list = everyone(kRanks);
  FakeExchange exchange(kRanks);
  unisono::threads group(kRanks);
  HangGuard guard(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      unisono::job job(group, rank);
      FakeExchange::End end = exchange.end(rank);
      {
        const unisono::communicator made = job.world().from_list(
            list, [&](std::span<const std::byte> input, std::span<std::byte> output) {
              if (end.allgather(input.data(), output.data(), input.size()) != 0) {
                throw std::runtime_error("no exchange");
              }
            });
        EXPECT_EQ(made.size(), kRanks);
        EXPECT_EQ(made.rank(), rank);
      }
      EXPECT_THROW(job.world().from_list(list,
                                         [](std::span<const std::byte>, std::span<std::byte>) {
                                           throw std::runtime_error("my own");
                                         }),
                   std::runtime_error);
      guard.done(rank);
    });
  }
  guard.wait();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace unisono::harness::from_list_with_test
