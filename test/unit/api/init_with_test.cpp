// SPDX-License-Identifier: BSD-3-Clause
// unisono_init_with: jobs over an exchange of the caller's. Results, several jobs at once, and a
// failure at every step on one rank, which is an error for all ranks. Ranks are threads here;
// processes on several hosts: test/net/exchange_test.cpp.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "harness/await.hpp"
#include "harness/fake_exchange.hpp"
#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"
#include "unisono/unisono.hpp"

namespace unisono::harness::init_with_test {
namespace {

// The timeout of a failing phase. Long enough for ranks of a busy machine that do not fail.
constexpr std::int64_t kShortMs = 1500;
constexpr std::int64_t kPatientMs = 120'000;

void on_ranks(int ranks, const std::function<void(int)>& body) {
  HangGuard guard(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      SCOPED_TRACE("rank " + std::to_string(rank));
      body(rank);
      guard.done(rank);
    });
  }
  guard.wait();
  for (std::thread& thread : threads) thread.join();
}

void expect_sum(unisono_comm_t comm, int rank, int ranks) {
  const std::int64_t own = rank + 1;
  std::int64_t sum = 0;
  EXPECT_TRUE(succeeded(unisono_allreduce(&own, &sum, 1, UNISONO_INT64, UNISONO_SUM, comm)));
  EXPECT_EQ(sum, std::int64_t{ranks} * (ranks + 1) / 2);
}

class InitWith : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, InitWith, testing::Values(1, 2, 3, 5, 9));

TEST_P(InitWith, GivesACommunicatorOfAllRanks) {
  const int ranks = GetParam();
  FakeExchange exchange(ranks);
  on_ranks(ranks, [&](int rank) {
    unisono_comm_t world = nullptr;
    ASSERT_TRUE(succeeded(init_over(exchange, rank, ranks, &world, kPatientMs)));
    int seen = -1;
    EXPECT_TRUE(succeeded(unisono_comm_rank(world, &seen)));
    EXPECT_EQ(seen, rank);
    EXPECT_TRUE(succeeded(unisono_comm_size(world, &seen)));
    EXPECT_EQ(seen, ranks);
    expect_sum(world, rank, ranks);
    std::vector<double> whole(70'000, rank == ranks - 1 ? 4.5 : 0.0);  // a long message
    EXPECT_TRUE(
        succeeded(unisono_broadcast(whole.data(), 70'000, UNISONO_FLOAT64, ranks - 1, world)));
    EXPECT_EQ(whole, std::vector<double>(70'000, 4.5));
    EXPECT_TRUE(succeeded(unisono_finalize(world)));
  });
}

TEST(InitWithJobs, AThreadHasSeveralJobsWithOtherRanks) {
  constexpr int kRanks = 3;
  FakeExchange forward(kRanks), backward(kRanks);
  on_ranks(kRanks, [&](int rank) {
    unisono_comm_t one = nullptr, other = nullptr;
    ASSERT_TRUE(succeeded(init_over(forward, rank, kRanks, &one, kPatientMs)));
    ASSERT_TRUE(succeeded(init_over(backward, kRanks - 1 - rank, kRanks, &other, kPatientMs)));
    for (int i = 0; i < 20; ++i) {
      expect_sum(one, rank, kRanks);
      expect_sum(other, kRanks - 1 - rank, kRanks);
    }
    EXPECT_TRUE(succeeded(unisono_finalize(one)));
    expect_sum(other, kRanks - 1 - rank, kRanks);
    EXPECT_TRUE(succeeded(unisono_finalize(other)));
  });
}

TEST(InitWithJobs, ThreadsMakeJobsAtOnce) {
  constexpr int kJobs = 4;
  constexpr int kRanks = 2;
  std::vector<std::unique_ptr<FakeExchange>> exchanges;
  for (int i = 0; i < kJobs; ++i) exchanges.push_back(std::make_unique<FakeExchange>(kRanks));
  on_ranks(kJobs * kRanks, [&](int number) {
    const int rank = number % kRanks;
    unisono_comm_t world = nullptr;
    ASSERT_TRUE(succeeded(init_over(*exchanges[static_cast<std::size_t>(number / kRanks)], rank,
                                    kRanks, &world, kPatientMs)));
    for (int i = 0; i < 100; ++i) expect_sum(world, rank, kRanks);
    EXPECT_TRUE(succeeded(unisono_finalize(world)));
  });
}

TEST(InitWithJobs, ManyJobsOneAfterTheOtherKeepNothing) {
  constexpr int kRanks = 2;
  constexpr int kJobs = 200;
  std::vector<std::unique_ptr<FakeExchange>> exchanges;
  for (int i = 0; i < kJobs; ++i) exchanges.push_back(std::make_unique<FakeExchange>(kRanks));
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  std::ptrdiff_t before = 0;
  on_ranks(kRanks, [&](int rank) {
    for (int i = 0; i < kJobs; ++i) {
      unisono_comm_t world = nullptr;
      ASSERT_TRUE(succeeded(
          init_over(*exchanges[static_cast<std::size_t>(i)], rank, kRanks, &world, kPatientMs)));
      expect_sum(world, rank, kRanks);
      ASSERT_TRUE(succeeded(unisono_finalize(world)));
      if (i == 0 && rank == 0) before = descriptors();
    }
  });
  EXPECT_LE(descriptors(), before + 8);  // far fewer than one for each job
}

// The failure of one rank in a step of the exchange gives all ranks an error.
void expect_failure_of_all(FakeExchange& exchange, int ranks, std::int64_t timeout_ms) {
  std::atomic<int> failures = 0;
  on_ranks(ranks, [&](int rank) {
    unisono_comm_t world = nullptr;
    const int error = init_over(exchange, rank, ranks, &world, timeout_ms);
    EXPECT_NE(error, UNISONO_OK);
    EXPECT_EQ(world, nullptr);
    EXPECT_STRNE(unisono_last_error(), "");
    if (error != UNISONO_OK) ++failures;
  });
  EXPECT_EQ(failures, ranks);
}

constexpr int kStepsOnOneHost = 3;

class FailingStep : public testing::TestWithParam<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(StepsAndRanks, FailingStep,
                         testing::Combine(testing::Range(1, kStepsOnOneHost + 1),
                                          testing::Values(0, 2)));

// The others' call of this step succeeds, and they go on until something tells them.
TEST_P(FailingStep, OfOneRankAloneIsAnErrorOfAll) {
  const int step = std::get<0>(GetParam()), victim = std::get<1>(GetParam());
  FakeExchange* broken = nullptr;
  FakeExchange exchange(3, [&, step, victim](int rank, int at, auto) {
    if (rank != victim || at != step) return 0;
    broken->break_now();
    return 1;
  });
  broken = &exchange;
  expect_failure_of_all(exchange, 3, kShortMs);
}

// The rank goes on, with records that it cannot use.
TEST_P(FailingStep, ByWhatARankReceivesIsAnErrorOfAll) {
  const int step = std::get<0>(GetParam()), victim = std::get<1>(GetParam());
  FakeExchange* broken = nullptr;
  FakeExchange exchange(3, [&, step, victim](int rank, int at, auto output) {
    if (rank == victim && at == step) {
      std::memset(output.data(), 0x5a, output.size());
      broken->break_now();  // this rank takes part in no further step
    }
    return 0;
  });
  broken = &exchange;
  expect_failure_of_all(exchange, 3, kShortMs);
}

TEST(InitWithFailure, ARankWithAnAddressThatLeadsNowhereTellsTheOthers) {
  FakeExchange exchange(3, [](int rank, int step, std::span<std::byte> output) {
    if (rank != 1 || step != 2) return 0;
    std::string_view all(reinterpret_cast<const char*>(output.data()), output.size());
    const std::size_t at = all.find("unix:");
    EXPECT_NE(at, std::string_view::npos);
    output[at] = std::byte{'X'};
    return 0;
  });
  on_ranks(3, [&](int rank) {
    unisono_comm_t world = nullptr;
    const int error = init_over(exchange, rank, 3, &world, kShortMs);
    EXPECT_TRUE(failed_with_any(error, {UNISONO_ERROR_ARGUMENT, UNISONO_ERROR_TIMEOUT}));
  });
}

TEST(InitWithFailure, InvalidOptionsOfARankAreAnErrorOfAllAndANewTrySucceeds) {
  FakeExchange exchange(3);
  FakeExchange again(3);
  on_ranks(3, [&](int rank) {
    unisono_comm_t world = nullptr;
    EXPECT_TRUE(failed(init_over(exchange, rank, 3, &world, rank == 1 ? -1 : kPatientMs),
                       UNISONO_ERROR_ARGUMENT, {"unisono_init_with", "timeout_ms is -1"}));
    ASSERT_TRUE(succeeded(init_over(again, rank, 3, &world, kPatientMs)));
    expect_sum(world, rank, 3);
    EXPECT_TRUE(succeeded(unisono_finalize(world)));
  });
}

TEST(InitWithFailure, ARankWithoutAPlaceForTheResultIsAnErrorOfAll) {
  FakeExchange exchange(2);
  on_ranks(2, [&](int rank) {
    unisono_comm_t world = nullptr;
    EXPECT_TRUE(failed(init_over(exchange, rank, 2, rank == 0 ? nullptr : &world, kPatientMs),
                       UNISONO_ERROR_ARGUMENT, {"world is NULL"}));
  });
}

TEST(InitWithFailure, DifferentSizesAreAnErrorOfAll) {
  FakeExchange exchange(2);
  on_ranks(2, [&](int rank) {
    unisono_comm_t world = nullptr;
    EXPECT_TRUE(failed(init_over(exchange, rank, 2 + rank, &world, kPatientMs),
                       UNISONO_ERROR_ARGUMENT, {"was told that the job has"}));
  });
}

TEST(InitWithFailure, WhatCannotReachTheOthersIsRefusedAtOnce) {
  unisono_comm_t world = nullptr;
  const unisono_exchange_t none{nullptr, nullptr, 0};
  FakeExchange exchange(1);
  EXPECT_TRUE(failed(unisono_init_with(0, 1, nullptr, nullptr, &world), UNISONO_ERROR_ARGUMENT,
                     {"exchange"}));
  EXPECT_TRUE(
      failed(unisono_init_with(0, 1, &none, nullptr, &world), UNISONO_ERROR_ARGUMENT, {"NULL"}));
  EXPECT_TRUE(failed(init_over(exchange, 1, 1, &world), UNISONO_ERROR_ARGUMENT, {"rank 1 of 1"}));
  EXPECT_TRUE(failed(init_over(exchange, 0, 0, &world), UNISONO_ERROR_ARGUMENT, {"0 ranks"}));
  EXPECT_TRUE(
      failed(init_over(exchange, 0, 1 << 20, &world), UNISONO_ERROR_ARGUMENT, {"1048576 ranks"}));
}

// The others wait in the exchange, which has no deadline; then the start goes on.
TEST(InitWithLate, ALateRankIsWaitedFor) {
  FakeExchange exchange(2);
  std::atomic<bool> others_wait = false;
  on_ranks(2, [&](int rank) {
    if (rank == 1) {
      await([&] { return others_wait.load(); });
    }
    others_wait = true;
    unisono_comm_t world = nullptr;
    ASSERT_TRUE(succeeded(init_over(exchange, rank, 2, &world, kPatientMs)));
    expect_sum(world, rank, 2);
    EXPECT_TRUE(succeeded(unisono_finalize(world)));
  });
}

// A rank is held up after a step until the others have given up at the rendezvous and are in the
// next step.
TEST(InitWithLate, ARankThatIsLateForTheRendezvousIsAnErrorOfAll) {
  FakeExchange* whole = nullptr;
  FakeExchange exchange(3, [&](int rank, int step, std::span<std::byte>) {
    if (rank != 2 || step != 2) return 0;
    await([&] { return whole->arrived(3) >= 2; });
    return 0;
  });
  whole = &exchange;
  on_ranks(3, [&](int rank) {
    unisono_comm_t world = nullptr;
    EXPECT_TRUE(
        failed_with_any(init_over(exchange, rank, 3, &world, kShortMs),
                        {UNISONO_ERROR_TIMEOUT, UNISONO_ERROR_RANK_LOST, UNISONO_ERROR_STATE}));
  });
}

// Rank 1 comes to the collective only after rank 0, which waits there, has called its function.
TEST(InitWithCarryOn, AWaitingRankCallsTheFunction) {
  FakeExchange exchange(2);
  std::atomic<int> calls = 0;
  on_ranks(2, [&](int rank) {
    FakeExchange::End end = exchange.end(rank);
    const unisono_exchange_t functions = end.functions();
    const unisono_init_options_t options{
        sizeof options, kPatientMs, [](void* user) { ++*static_cast<std::atomic<int>*>(user); },
        &calls};
    unisono_comm_t world = nullptr;
    ASSERT_TRUE(succeeded(unisono_init_with(rank, 2, &functions, &options, &world)));
    // The last number is large enough for rank 0 to sleep, and to wake up for the function.
    for (const int wanted : {1, 20, 300}) {
      if (rank == 1) await([&] { return calls >= wanted; });
      EXPECT_TRUE(succeeded(unisono_barrier(world)));
    }
    EXPECT_TRUE(succeeded(unisono_finalize(world)));
  });
  EXPECT_GE(calls, 300);
}

// A program that was compiled before there was carry_on passes a shorter struct.
TEST(InitWithCarryOn, OptionsOfAnEarlierVersionEndBeforeIt) {
  FakeExchange exchange(1);
  FakeExchange::End end = exchange.end(0);
  const unisono_exchange_t functions = end.functions();
  unisono_init_options_t options{offsetof(unisono_init_options_t, carry_on), kPatientMs,
                                 [](void*) { ADD_FAILURE() << "called"; }, nullptr};
  unisono_comm_t world = nullptr;
  ASSERT_TRUE(succeeded(unisono_init_with(0, 1, &functions, &options, &world)));
  EXPECT_TRUE(succeeded(unisono_barrier(world)));
  EXPECT_TRUE(succeeded(unisono_finalize(world)));
  --options.size;
  EXPECT_TRUE(failed(unisono_init_with(0, 1, &functions, &options, &world), UNISONO_ERROR_ARGUMENT,
                     {"options->size"}));
}

TEST(InitWithCpp, AJobOverAFunction) {
  constexpr int kRanks = 3;
  FakeExchange exchange(kRanks);
  on_ranks(kRanks, [&](int rank) {
    FakeExchange::End end = exchange.end(rank);
    unisono::job job(rank, kRanks, [&end](auto input, auto output) {
      if (end.allgather(input.data(), output.data(), input.size()) != 0) {
        throw std::runtime_error("the exchange is broken");
      }
    });
    EXPECT_EQ(job.world().allreduce(rank, unisono::op::sum), 3);
  });
}

TEST(InitWithCpp, WhatTheFunctionThrowsTheConstructorThrows) {
  const auto make = [] {
    unisono::job(0, 1, [](auto, auto) { throw std::runtime_error("the exchange is broken"); });
  };
  EXPECT_THROW(make(), std::runtime_error);
}

}  // namespace
}  // namespace unisono::harness::init_with_test
