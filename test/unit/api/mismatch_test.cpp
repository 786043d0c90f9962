// SPDX-License-Identifier: BSD-3-Clause
// Ranks that make different calls. For every pair of differing calls, whichever rank differs, every
// rank gets MISMATCH: at this call or, having run ahead, at its next one or at finalize. The text
// names two ranks and their calls.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::mismatch_test {
namespace {

struct Desk {
  unisono_comm_t comm = nullptr;
  int ranks = 0;
  alignas(16) std::array<std::int32_t, 512> in{};
  alignas(16) std::array<std::int32_t, 512> out{};
  unisono_comm_t made = nullptr;
};

struct Variant {
  std::string name;
  std::string collective;   // as the text names it
  std::string distinction;  // distinguishes it from others of its collective
  std::function<int(Desk&)> call;
};

Variant broadcast(std::int64_t count, unisono_type_t type, int root, std::string distinction) {
  return {"broadcast of " + distinction, "broadcast", distinction,
          [=](Desk& d) { return unisono_broadcast(d.out.data(), count, type, root, d.comm); }};
}

Variant reduce(std::int64_t count, unisono_type_t type, unisono_op_t op, int root,
               std::string distinction) {
  return {"reduce of " + distinction, "reduce", distinction, [=](Desk& d) {
            return unisono_reduce(d.in.data(), d.out.data(), count, type, op, root, d.comm);
          }};
}

Variant allreduce(std::int64_t count, unisono_type_t type, unisono_op_t op,
                  std::string distinction) {
  return {"allreduce of " + distinction, "allreduce", distinction, [=](Desk& d) {
            return unisono_allreduce(d.in.data(), d.out.data(), count, type, op, d.comm);
          }};
}

Variant allgather(std::int64_t count, unisono_type_t type, std::string distinction) {
  return {"allgather of " + distinction, "allgather", distinction, [=](Desk& d) {
            return unisono_allgather(d.in.data(), d.out.data(), count, type, d.comm);
          }};
}

std::vector<Variant> block_variants() {
  const auto in = [](Desk& d) { return d.in.data(); };
  const auto out = [](Desk& d) { return d.out.data(); };
  const auto counted = [](const char* name, auto function, std::int64_t count) {
    return Variant{std::string(name) + " of " + std::to_string(count), name, std::to_string(count),
                   [=](Desk& d) { return function(d.in.data(), d.out.data(), count, d); }};
  };
  const auto block = [](const void* input, void* output, std::int64_t count, Desk& d) {
    return unisono_reduce_scatter_block(input, output, count, UNISONO_INT32, UNISONO_SUM, d.comm);
  };
  const auto gather = [](const void* input, void* output, std::int64_t count, Desk& d) {
    return unisono_gather(input, output, count, UNISONO_INT32, 0, d.comm);
  };
  return {
      counted("gather", gather, 4),
      counted("gather", gather, 5),
      counted("reduce_scatter_block", block, 1),
      counted("reduce_scatter_block", block, 2),
      {"scatter", "scatter", "root 1",
       [=](Desk& d) { return unisono_scatter(in(d), out(d), 3, UNISONO_INT32, 1, d.comm); }},
      {"alltoall", "alltoall", "count 3",
       [=](Desk& d) { return unisono_alltoall(in(d), out(d), 3, UNISONO_INT32, d.comm); }},
      {"scan", "scan", "count 3",
       [=](Desk& d) { return unisono_scan(in(d), out(d), 3, UNISONO_INT32, UNISONO_SUM, d.comm); }},
      {"exscan", "exscan", "count 3",
       [=](Desk& d) {
         return unisono_exscan(in(d), out(d), 3, UNISONO_INT32, UNISONO_SUM, d.comm);
       }},
  };
}

// Neighbours in the lists differ in one thing only.
const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = [] {
    std::vector<Variant> some = {
        {"barrier", "barrier", "", [](Desk& d) { return unisono_barrier(d.comm); }},
        broadcast(4, UNISONO_INT32, 0, "root 0"),
        broadcast(4, UNISONO_INT32, 1, "root 1"),
        broadcast(7, UNISONO_INT32, 0, "7"),
        broadcast(0, UNISONO_INT32, 0, "0"),
        broadcast(4, UNISONO_FLOAT32, 0, "float32"),
        reduce(4, UNISONO_INT32, UNISONO_SUM, 0, "root 0"),
        reduce(4, UNISONO_INT32, UNISONO_SUM, 1, "root 1"),
        reduce(4, UNISONO_INT32, UNISONO_MAX, 0, "max"),
        reduce(5, UNISONO_INT32, UNISONO_SUM, 0, "5"),
        allreduce(4, UNISONO_INT32, UNISONO_SUM, "int32"),
        allreduce(4, UNISONO_UINT32, UNISONO_SUM, "uint32"),
        allreduce(4, UNISONO_INT32, UNISONO_PROD, "prod"),
        allreduce(9, UNISONO_INT32, UNISONO_SUM, "9"),
        allgather(4, UNISONO_INT32, "int32"),
        allgather(6, UNISONO_INT32, "6"),
        allgather(4, UNISONO_INT32_INT32, "int32_int32"),
        {"comm_dup", "dup", "", [](Desk& d) { return unisono_comm_dup(d.comm, &d.made); }},
        {"comm_split", "split", "",
         [](Desk& d) { return unisono_comm_split(d.comm, 0, 0, &d.made); }},
    };
    for (Variant& each : block_variants()) some.push_back(std::move(each));
    return some;
  }();
  return all;
}

// The call, then whatever the rank does next, up to its end; with the text of the first error.
int first_error(Desk& desk, const Variant& variant, ThreadRank& self) {
  int error = variant.call(desk);
  if (error == UNISONO_OK) error = unisono_barrier(desk.comm);
  if (error == UNISONO_OK) error = self.finalize();
  return error;
}

testing::AssertionResult names_another_rank(const std::string& text, int ranks, int odd) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank != odd && text.find("rank " + std::to_string(rank)) != std::string::npos) {
      return testing::AssertionSuccess();
    }
  }
  return testing::AssertionFailure() << "no rank besides " << odd << " in \"" << text << "\"";
}

void check_pair(int ranks, int odd, const Variant& common, const Variant& different) {
  const std::string pair =
      "all call " + common.name + ", rank " + std::to_string(odd) + " calls " + different.name;
  run_threads(ranks, [&](ThreadRank& self) {
    SCOPED_TRACE(pair);
    Desk desk;
    desk.comm = self.world;
    desk.ranks = self.ranks;
    const int error = first_error(desk, self.rank == odd ? different : common, self);
    EXPECT_TRUE(failed(error, UNISONO_ERROR_MISMATCH,
                       {"rank " + std::to_string(odd), common.collective, different.collective,
                        different.distinction}));
    EXPECT_TRUE(names_another_rank(unisono_last_error(), self.ranks, odd));
    if (!self.finalized()) {
      EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_MISMATCH))
          << "the communicator has failed";
      self.finalize();
    }
  });
}

// Two different collectives may write one slot at once. That is the caller's error, which these
// tests make on purpose; it is no race in the library.
#define UNISONO_SKIP_UNDER_TSAN() \
  if (kThreadSanitizer) GTEST_SKIP() << "ranks that call different things write the same slots"

// Pairs number first, first + step, ...: a job each.
void check_pairs(int first, int step) {
  int pair = -1;
  for (const Variant& common : variants()) {
    for (const Variant& different : variants()) {
      if (&common == &different || ++pair % step != first) continue;
      if (kSanitized && pair % 5 != 0) continue;
      check_pair(3, pair % 3, common, different);
      if (testing::Test::HasFailure()) return;  // one pair says enough
    }
  }
}

// Several jobs at once, because most of the time their ranks sleep.
TEST(Mismatch, EveryPairOfDifferingCalls) {
  UNISONO_SKIP_UNDER_TSAN();
  constexpr int kJobs = 8;
  variants();  // made before the threads look at them
  std::vector<std::thread> jobs;
  for (int job = 0; job < kJobs; ++job) jobs.emplace_back(check_pairs, job, kJobs);
  for (std::thread& job : jobs) job.join();
}

class MismatchRanks : public testing::TestWithParam<int> {};

// The mismatching rank in every position, among few ranks and more than there are processors.
TEST_P(MismatchRanks, WhicheverRankDiffers) {
  UNISONO_SKIP_UNDER_TSAN();
  const int ranks = GetParam();
  const auto& all = variants();
  for (int odd = 0; odd < ranks; ++odd) {
    const std::size_t one = static_cast<std::size_t>(odd * 5) % all.size();
    const std::size_t other = (one + 3) % all.size();
    check_pair(ranks, odd, all[one], all[other]);
    check_pair(ranks, odd, all[other], all[one]);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, MismatchRanks, testing::Values(2, 5, 8, 16),
                         [](const auto& suite) { return "P" + std::to_string(suite.param); });

// After many operations that agreed, behind which ranks may have run ahead.
TEST(Mismatch, AfterManyThatAgreed) {
  UNISONO_SKIP_UNDER_TSAN();
  run_threads(4, [](ThreadRank& self) {
    Desk desk;
    desk.comm = self.world;
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(succeeded(
          unisono_broadcast(desk.out.data(), 8, UNISONO_INT32, i % self.ranks, self.world)));
    }
    const Variant& mine = variants()[self.rank == 3 ? 6 : 1];
    EXPECT_TRUE(failed(first_error(desk, mine, self), UNISONO_ERROR_MISMATCH,
                       {"rank 3", "reduce", "broadcast"}));
    if (!self.finalized()) self.finalize();
  });
}

TEST(Mismatch, OfStartedOperationsAndPlans) {
  UNISONO_SKIP_UNDER_TSAN();
  run_threads(3, [](ThreadRank& self) {
    std::int32_t in = 1;
    std::int32_t out = 0;
    unisono_request_t request = nullptr;
    int error = UNISONO_OK;
    if (self.rank == 0) {
      error =
          unisono_allreduce_start(&in, &out, 1, UNISONO_INT32, UNISONO_SUM, self.world, &request);
      if (error == UNISONO_OK) error = unisono_wait(&request);
    } else if (self.rank == 1) {
      unisono_plan_t plan = nullptr;
      ASSERT_TRUE(succeeded(unisono_barrier_plan(self.world, &plan)));
      error = unisono_plan_start(plan);
      if (error == UNISONO_OK) error = unisono_plan_wait(plan);
    } else {
      error = unisono_allreduce(&in, &out, 1, UNISONO_INT32, UNISONO_SUM, self.world);
    }
    EXPECT_TRUE(failed(error, UNISONO_ERROR_MISMATCH, {"rank 1", "barrier", "allreduce"}));
    self.finalize();
  });
}

// The order of calls must match too.
TEST(Mismatch, StartedInDifferentOrders) {
  UNISONO_SKIP_UNDER_TSAN();
  run_threads(2, [](ThreadRank& self) {
    std::int32_t values[2] = {1, 1};
    unisono_request_t requests[2] = {};
    int error = UNISONO_OK;
    for (int i = 0; i < 2 && error == UNISONO_OK; ++i) {
      const bool barrier_now = (i == 0) == (self.rank == 0);
      auto* request = &requests[i];
      error = barrier_now ? unisono_barrier_start(self.world, request)
                          : unisono_allreduce_start(&values[0], &values[1], 1, UNISONO_INT32,
                                                    UNISONO_SUM, self.world, request);
    }
    if (error == UNISONO_OK) error = unisono_wait_all(requests, 2);
    EXPECT_TRUE(
        failed(error, UNISONO_ERROR_MISMATCH, {"rank 0", "rank 1", "barrier", "allreduce"}));
    self.finalize();
  });
}

// ---- count arrays ----

struct Arrays {
  std::array<std::int64_t, 3> counts;
  std::array<int, 3> receives;
};

// Rank 2 passes other arrays than the others, with the same length of its own block.
void check_arrays(const Arrays& common, const Arrays& different,
                  const std::vector<std::string>& parts,
                  const std::function<int(Desk&, const Arrays&, std::int64_t)>& make_call) {
  run_threads(3, [&](ThreadRank& self) {
    Desk desk;
    desk.comm = self.world;
    const Arrays& mine = self.rank == 2 ? different : common;
    int error = make_call(desk, mine, mine.counts[static_cast<std::size_t>(self.rank)]);
    if (error == UNISONO_OK) error = unisono_barrier(self.world);
    if (error == UNISONO_OK) error = self.finalize();
    EXPECT_TRUE(failed(error, UNISONO_ERROR_MISMATCH, parts));
    if (!self.finalized()) self.finalize();
  });
}

TEST(Mismatch, OfCountArrays) {
  UNISONO_SKIP_UNDER_TSAN();
  const Arrays common{{4, 2, 3}, {1, 1, 1}};
  const Arrays longer{{4, 4, 3}, {1, 1, 1}};
  const Arrays swapped{{2, 4, 3}, {1, 1, 1}};
  const Arrays fewer{{4, 2, 3}, {1, 0, 1}};
  const auto allgatherv = [](Desk& d, const Arrays& a, std::int64_t own) {
    return unisono_allgatherv(d.in.data(), own, d.out.data(), a.counts.data(), nullptr,
                              UNISONO_INT32, d.comm);
  };
  const auto many_to_many = [](Desk& d, const Arrays& a, std::int64_t own) {
    unisono_request_t request = nullptr;
    const int error =
        unisono_many_to_many_start(d.in.data(), own, d.out.data(), a.counts.data(), nullptr,
                                   a.receives.data(), UNISONO_INT32, d.comm, &request);
    return error == UNISONO_OK ? unisono_wait(&request) : error;
  };
  const auto reduce_scatter = [](Desk& d, const Arrays& a, std::int64_t) {
    return unisono_reduce_scatter(d.in.data(), d.out.data(), a.counts.data(), UNISONO_INT32,
                                  UNISONO_SUM, d.comm);
  };
  const std::vector<std::string> totals = {"rank 2", "blocks of 9", "blocks of 11"};
  const std::vector<std::string> same = {"rank 2", "blocks of 9", "counts of blocks"};
  check_arrays(common, longer, totals, allgatherv);
  check_arrays(common, swapped, same, allgatherv);
  check_arrays(common, longer, totals, many_to_many);
  check_arrays(common, fewer, same, many_to_many);
  check_arrays(common, longer, totals, reduce_scatter);
  check_arrays(common, swapped, same, reduce_scatter);
}

// Equal blocks and unequal blocks are different calls.
TEST(Mismatch, OfEqualBlocksAndOnesOfEqualLength) {
  UNISONO_SKIP_UNDER_TSAN();
  const Arrays both{{3, 3, 3}, {1, 1, 1}};
  int calls = 0;
  std::mutex mutex;
  check_arrays(
      both, both, {"allgather(count 3", "allgatherv(blocks of 9", "rank "},
      [&](Desk& d, const Arrays& a, std::int64_t own) {
        bool is_first = false;
        {
          const std::lock_guard lock(mutex);
          is_first = calls++ == 0;
        }
        return is_first ? unisono_allgather(d.in.data(), d.out.data(), own, UNISONO_INT32, d.comm)
                        : unisono_allgatherv(d.in.data(), own, d.out.data(), a.counts.data(),
                                             nullptr, UNISONO_INT32, d.comm);
      });
}

TEST(Mismatch, OfLists) {
  run_threads(3, [](ThreadRank& self) {
    const int list[2] = {0, self.rank == 2 ? 2 : 1};
    unisono_comm_t chosen = nullptr;
    EXPECT_TRUE(failed(unisono_comm_from_list(self.world, list, 2, &chosen), UNISONO_ERROR_MISMATCH,
                       {"rank 2", "list"}));
    EXPECT_EQ(chosen, nullptr);
    self.finalize();
  });
}

// A rank that only leaves has not called anything different: it is lost, not mismatched.
TEST(Mismatch, LeavingIsNoMismatch) {
  run_threads(3, [](ThreadRank& self) {
    if (self.rank == 1) return;
    EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST, {"rank 1"}));
    self.finalize();
  });
}

TEST(Mismatch, OtherCommunicatorsGoOn) {
  UNISONO_SKIP_UNDER_TSAN();
  run_threads(3, [](ThreadRank& self) {
    unisono_comm_t other = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &other)));
    Desk desk;
    desk.comm = other;
    const Variant& mine = variants()[self.rank == 0 ? 0 : 10];
    EXPECT_TRUE(failed(mine.call(desk), UNISONO_ERROR_MISMATCH, {"rank 0"}));
    std::int32_t one = 1;
    std::int32_t sum = 0;
    EXPECT_TRUE(
        succeeded(unisono_allreduce(&one, &sum, 1, UNISONO_INT32, UNISONO_SUM, self.world)));
    EXPECT_EQ(sum, 3);
    EXPECT_TRUE(succeeded(unisono_comm_free(other)));
  });
}

}  // namespace
}  // namespace unisono::harness::mismatch_test
