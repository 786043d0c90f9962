// SPDX-License-Identifier: BSD-3-Clause
// The result of every collective, for every number of ranks in rank_counts(): all types with all
// operators that fit, many counts, in place, every root. Against a naive reference, with inputs
// whose results are exact. Inputs stay as they were and nothing is written beside an output.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "harness/buffer.hpp"
#include "harness/elements.hpp"
#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::collectives_test {
namespace {

const std::vector<std::int64_t> kCounts = {0, 1, 7, 8, 9, 63, 64, 65, 1000};
constexpr std::int64_t kMostSmall = 1000;

// Odd, and less where many ranks share the memory and the processors.
std::int64_t large_count(int ranks) { return scaled(ranks <= 8 ? 40009 : 25013); }

// A pair of a type and an operator with the result of its reduction over all ranks.
struct ReductionCase {
  TypedOp pair;
  std::vector<Element> expected;
};

std::vector<ReductionCase> all_cases(int ranks) {
  std::vector<ReductionCase> cases;
  for (const TypedOp pair : typed_ops_for(ranks)) {
    cases.push_back({pair, reference(pair, ranks, kMostSmall)});
  }
  return cases;
}

// Few of each size and kind of kernel: for the counts that take long.
std::vector<ReductionCase> large_cases(int ranks) {
  const std::int64_t count = large_count(ranks);
  std::vector<ReductionCase> cases;
  for (const TypedOp pair :
       {TypedOp{UNISONO_BYTE, UNISONO_BITWISE_XOR}, TypedOp{UNISONO_FLOAT16, UNISONO_SUM},
        TypedOp{UNISONO_INT32, UNISONO_MAX}, TypedOp{UNISONO_FLOAT64, UNISONO_SUM},
        TypedOp{UNISONO_COMPLEX128, UNISONO_PROD}, TypedOp{UNISONO_INT64_INT32, UNISONO_MINLOC}}) {
    cases.push_back({pair, reference(pair, ranks, count)});
  }
  return cases;
}

void check_allreduce(const ThreadRank& self, const ReductionCase& c, std::int64_t count) {
  Buffer input(c.pair.type, count);
  Buffer output(c.pair.type, count);
  input.fill(c.pair, self.rank, 0, count);
  ASSERT_TRUE(succeeded(
      unisono_allreduce(input.data(), output.data(), count, c.pair.type, c.pair.op, self.world)));
  ASSERT_TRUE(output.holds(c.expected, 0, count));
  ASSERT_TRUE(output.guards_intact());
  ASSERT_TRUE(input.holds_samples(c.pair, self.rank, 0, count)) << "the input was changed";
}

void check_allreduce_in_place(const ThreadRank& self, const ReductionCase& c, std::int64_t count) {
  Buffer output(c.pair.type, count);
  output.fill(c.pair, self.rank, 0, count);
  ASSERT_TRUE(succeeded(unisono_allreduce(UNISONO_IN_PLACE, output.data(), count, c.pair.type,
                                          c.pair.op, self.world)));
  ASSERT_TRUE(output.holds(c.expected, 0, count));
  ASSERT_TRUE(output.guards_intact());
}

void check_reduce(const ThreadRank& self, const ReductionCase& c, std::int64_t count, int root,
                  bool in_place) {
  Buffer input(c.pair.type, count);
  Buffer output(c.pair.type, count);
  input.fill(c.pair, self.rank, 0, count);
  const bool is_root = self.rank == root;
  const void* from = input.data();
  if (is_root && in_place) {
    output.fill(c.pair, self.rank, 0, count);
    from = UNISONO_IN_PLACE;
  }
  ASSERT_TRUE(succeeded(
      unisono_reduce(from, output.data(), count, c.pair.type, c.pair.op, root, self.world)));
  ASSERT_TRUE(input.holds_samples(c.pair, self.rank, 0, count)) << "the input was changed";
  if (!is_root) {
    ASSERT_TRUE(output.untouched()) << "output is ignored elsewhere than at the root";
    return;
  }
  ASSERT_TRUE(output.holds(c.expected, 0, count));
  ASSERT_TRUE(output.guards_intact());
}

void check_broadcast(const ThreadRank& self, unisono_type_t type, std::int64_t count, int root) {
  const TypedOp pair{type, is_pair(type) ? UNISONO_MINLOC : UNISONO_SUM};
  Buffer buffer(type, count);
  if (self.rank == root) buffer.fill(pair, root, 0, count);
  ASSERT_TRUE(succeeded(unisono_broadcast(buffer.data(), count, type, root, self.world)));
  ASSERT_TRUE(buffer.holds_samples(pair, root, 0, count));
  ASSERT_TRUE(buffer.guards_intact());
}

void check_allgather(const ThreadRank& self, unisono_type_t type, std::int64_t count,
                     bool in_place) {
  const TypedOp pair{type, is_pair(type) ? UNISONO_MINLOC : UNISONO_SUM};
  Buffer input(type, count);
  Buffer output(type, count * self.ranks);
  input.fill(pair, self.rank, 0, count);
  if (in_place) output.fill(pair, self.rank, self.rank * count, count);
  ASSERT_TRUE(succeeded(unisono_allgather(in_place ? UNISONO_IN_PLACE : input.data(), output.data(),
                                          count, type, self.world)));
  for (int rank = 0; rank < self.ranks; ++rank) {
    ASSERT_TRUE(output.holds_samples(pair, rank, rank * count, count));
  }
  ASSERT_TRUE(output.guards_intact());
  ASSERT_TRUE(input.holds_samples(pair, self.rank, 0, count)) << "the input was changed";
}

class Collectives : public testing::TestWithParam<int> {
 protected:
  int ranks() const { return GetParam(); }
};

TEST_P(Collectives, AllreduceOfEveryTypeWithEveryOperator) {
  const auto cases = all_cases(ranks());
  run_threads(ranks(), [&](ThreadRank& self) {
    for (const ReductionCase& c : cases) {
      SCOPED_TRACE(name_of(c.pair));
      for (const std::int64_t count : kCounts) {
        SCOPED_TRACE(count);
        ASSERT_NO_FATAL_FAILURE(check_allreduce(self, c, count));
      }
      ASSERT_NO_FATAL_FAILURE(check_allreduce_in_place(self, c, 65));
    }
  });
}

TEST_P(Collectives, ReduceOfEveryTypeWithEveryOperatorAndRootsInTurn) {
  const auto cases = all_cases(ranks());
  run_threads(ranks(), [&](ThreadRank& self) {
    int root = 0;
    for (const ReductionCase& c : cases) {
      SCOPED_TRACE(name_of(c.pair));
      for (const std::int64_t count : kCounts) {
        SCOPED_TRACE(count);
        ASSERT_NO_FATAL_FAILURE(check_reduce(self, c, count, root, count % 2 == 1));
        root = (root + 1) % self.ranks;
      }
    }
  });
}

TEST_P(Collectives, InPlaceReductionsOfEveryCount) {
  const ReductionCase c{{UNISONO_INT32, UNISONO_SUM},
                        reference({UNISONO_INT32, UNISONO_SUM}, ranks(), kMostSmall)};
  run_threads(ranks(), [&](ThreadRank& self) {
    for (const std::int64_t count : kCounts) {
      SCOPED_TRACE(count);
      ASSERT_NO_FATAL_FAILURE(check_allreduce_in_place(self, c, count));
      for (int root = 0; root < self.ranks; ++root) {
        ASSERT_NO_FATAL_FAILURE(check_reduce(self, c, count, root, true));
      }
    }
  });
}

TEST_P(Collectives, LargeReductions) {
  const auto cases = large_cases(ranks());
  run_threads(ranks(), [&](ThreadRank& self) {
    const std::int64_t count = large_count(self.ranks);
    for (const ReductionCase& c : cases) {
      SCOPED_TRACE(name_of(c.pair));
      ASSERT_NO_FATAL_FAILURE(check_allreduce(self, c, count));
      ASSERT_NO_FATAL_FAILURE(check_allreduce_in_place(self, c, count));
      ASSERT_NO_FATAL_FAILURE(check_reduce(self, c, count, self.ranks / 2, false));
      ASSERT_NO_FATAL_FAILURE(check_reduce(self, c, count, self.ranks - 1, true));
    }
  });
}

TEST_P(Collectives, BroadcastOfEveryTypeFromEveryRoot) {
  run_threads(ranks(), [&](ThreadRank& self) {
    for (unisono_type_t type = 0; type < kTypes; ++type) {
      SCOPED_TRACE(type);
      for (const std::int64_t count : kCounts) {
        SCOPED_TRACE(count);
        ASSERT_NO_FATAL_FAILURE(check_broadcast(self, type, count, (type + 1) % self.ranks));
      }
    }
    for (int root = 0; root < self.ranks; ++root) {
      SCOPED_TRACE(root);
      for (const std::int64_t count : kCounts) {
        ASSERT_NO_FATAL_FAILURE(check_broadcast(self, UNISONO_INT16, count, root));
      }
    }
    ASSERT_NO_FATAL_FAILURE(
        check_broadcast(self, UNISONO_FLOAT64, large_count(self.ranks), self.ranks - 1));
    ASSERT_NO_FATAL_FAILURE(check_broadcast(self, UNISONO_UINT8, large_count(self.ranks), 0));
  });
}

TEST_P(Collectives, AllgatherOfEveryType) {
  run_threads(ranks(), [&](ThreadRank& self) {
    for (unisono_type_t type = 0; type < kTypes; ++type) {
      SCOPED_TRACE(type);
      for (const std::int64_t count : kCounts) {
        SCOPED_TRACE(count);
        ASSERT_NO_FATAL_FAILURE(check_allgather(self, type, count, count % 2 == 0));
        ASSERT_NO_FATAL_FAILURE(check_allgather(self, type, count, count % 2 == 1));
      }
    }
    // The blocks shrink with the ranks, so that the results of all ranks fit into memory.
    const std::int64_t large = 2 * large_count(self.ranks) / self.ranks;
    ASSERT_NO_FATAL_FAILURE(check_allgather(self, UNISONO_FLOAT64, large, false));
    ASSERT_NO_FATAL_FAILURE(check_allgather(self, UNISONO_COMPLEX128, large, true));
  });
}

// No rank leaves before all have come: seen through a counter that has nothing to do with it.
TEST_P(Collectives, BarrierHoldsEveryRank) {
  std::atomic<std::int64_t> arrived{0};
  run_threads(ranks(), [&](ThreadRank& self) {
    const std::int64_t rounds = scaled(200);
    for (std::int64_t round = 1; round <= rounds; ++round) {
      arrived.fetch_add(1);
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      ASSERT_GE(arrived.load(), round * self.ranks);
    }
  });
  EXPECT_EQ(arrived.load(), scaled(200) * ranks());
}

TEST_P(Collectives, NullBuffersAreFineWhereNothingIsMoved) {
  run_threads(ranks(), [](ThreadRank& self) {
    const unisono_comm_t world = self.world;
    EXPECT_TRUE(succeeded(unisono_broadcast(nullptr, 0, UNISONO_INT32, 0, world)));
    EXPECT_TRUE(
        succeeded(unisono_allreduce(nullptr, nullptr, 0, UNISONO_INT32, UNISONO_SUM, world)));
    EXPECT_TRUE(
        succeeded(unisono_reduce(nullptr, nullptr, 0, UNISONO_INT32, UNISONO_SUM, 0, world)));
    EXPECT_TRUE(succeeded(unisono_allgather(nullptr, nullptr, 0, UNISONO_INT32, world)));
    const std::vector<std::int64_t> none(static_cast<std::size_t>(self.ranks), 0);
    EXPECT_TRUE(succeeded(unisono_gather(nullptr, nullptr, 0, UNISONO_INT32, 0, world)));
    EXPECT_TRUE(succeeded(unisono_scatter(nullptr, nullptr, 0, UNISONO_INT32, 0, world)));
    EXPECT_TRUE(succeeded(unisono_alltoall(nullptr, nullptr, 0, UNISONO_INT32, world)));
    EXPECT_TRUE(succeeded(
        unisono_reduce_scatter_block(nullptr, nullptr, 0, UNISONO_INT32, UNISONO_SUM, world)));
    EXPECT_TRUE(succeeded(unisono_scan(nullptr, nullptr, 0, UNISONO_INT32, UNISONO_SUM, world)));
    EXPECT_TRUE(
        succeeded(unisono_exscan(UNISONO_IN_PLACE, nullptr, 0, UNISONO_INT32, UNISONO_SUM, world)));
    EXPECT_TRUE(succeeded(
        unisono_allgatherv(nullptr, 0, nullptr, none.data(), nullptr, UNISONO_INT32, world)));
    EXPECT_TRUE(succeeded(unisono_many_to_many(nullptr, 0, nullptr, none.data(), nullptr, nullptr,
                                               UNISONO_INT32, world)));
    EXPECT_TRUE(succeeded(
        unisono_reduce_scatter(nullptr, nullptr, none.data(), UNISONO_INT32, UNISONO_SUM, world)));
    std::int32_t one = 1;
    std::int32_t sum = 0;
    void* output = self.rank == 0 ? &sum : nullptr;  // ignored elsewhere
    EXPECT_TRUE(succeeded(unisono_reduce(&one, output, 1, UNISONO_INT32, UNISONO_SUM, 0, world)));
    EXPECT_EQ(sum, self.rank == 0 ? self.ranks : 0);
  });
}

// Sums of numbers that round: no reference could say the bits, but every rank has the same ones,
// and a second run gives them again.
TEST_P(Collectives, FloatSumsHaveTheSameBitsAtEveryRank) {
  constexpr std::int64_t kMost = 5000;
  const auto width = static_cast<std::size_t>(kMost);
  std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks()));
  run_threads(ranks(), [&](ThreadRank& self) {
    for (const std::int64_t count : {std::int64_t{1}, std::int64_t{3}, std::int64_t{64}, kMost}) {
      std::vector<float> input(width);
      std::vector<float> first(width);
      std::vector<float> again(width);
      for (std::size_t i = 0; i < width; ++i) {
        const std::uint64_t bits = mixed(static_cast<std::uint64_t>(self.rank), i);
        input[i] = static_cast<float>(bits % 1000003) / 997.0F * ((bits >> 40) % 2 != 0 ? 1 : -1);
      }
      ASSERT_TRUE(succeeded(unisono_allreduce(input.data(), first.data(), count, UNISONO_FLOAT32,
                                              UNISONO_SUM, self.world)));
      ASSERT_TRUE(succeeded(unisono_allreduce(input.data(), again.data(), count, UNISONO_FLOAT32,
                                              UNISONO_SUM, self.world)));
      ASSERT_EQ(std::memcmp(first.data(), again.data(), sizeof(float) * width), 0);
      auto& mine = results[static_cast<std::size_t>(self.rank)];
      mine.insert(mine.end(), first.begin(), first.begin() + count);
    }
  });
  for (const auto& mine : results) {
    ASSERT_EQ(mine.size(), results[0].size());
    EXPECT_EQ(std::memcmp(mine.data(), results[0].data(), sizeof(float) * mine.size()), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::ValuesIn(rank_counts()),
                         [](const auto& suite) { return "P" + std::to_string(suite.param); });

}  // namespace
}  // namespace unisono::harness::collectives_test
