// SPDX-License-Identifier: BSD-3-Clause
// Results between real processes, whose memory is not the same at the same addresses: collectives
// of all sizes, split-phase, plans and communicators, with each engine, with and without single
// copies, and with sequence numbers that wrap on the way.
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "harness/block_results.hpp"
#include "harness/elements.hpp"
#include "harness/outcome.hpp"
#include "harness/own_block_results.hpp"
#include "harness/scale.hpp"
#include "process/ranks.hpp"

namespace unisono::harness {
namespace {

std::vector<std::int64_t> own_values(const ProcessRank& self, std::int64_t count) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int64_t>(i) * 3 + self.rank;
  }
  return values;
}

std::int64_t expected_sum(int ranks, std::size_t i) {
  return static_cast<std::int64_t>(i) * 3 * ranks + std::int64_t{ranks} * (ranks - 1) / 2;
}

void check_reductions(const ProcessRank& self, std::int64_t count, int root) {
  const auto input = own_values(self, count);
  std::vector<std::int64_t> everywhere(input.size());
  std::vector<std::int64_t> at_root(input.size(), -1);
  ASSERT_TRUE(succeeded(unisono_allreduce(input.data(), everywhere.data(), count, UNISONO_INT64,
                                          UNISONO_SUM, self.world)));
  ASSERT_TRUE(succeeded(unisono_reduce(input.data(), at_root.data(), count, UNISONO_INT64,
                                       UNISONO_SUM, root, self.world)));
  for (std::size_t i = 0; i < input.size(); ++i) {
    ASSERT_EQ(everywhere[i], expected_sum(self.ranks, i));
    ASSERT_EQ(at_root[i], self.rank == root ? everywhere[i] : -1);
  }
}

void check_moves(const ProcessRank& self, std::int64_t count, int root) {
  auto buffer = own_values(self, count);
  const auto width = buffer.size();
  std::vector<std::int64_t> all(width * static_cast<std::size_t>(self.ranks));
  ASSERT_TRUE(
      succeeded(unisono_allgather(buffer.data(), all.data(), count, UNISONO_INT64, self.world)));
  ASSERT_TRUE(succeeded(unisono_broadcast(buffer.data(), count, UNISONO_INT64, root, self.world)));
  for (std::size_t i = 0; i < width; ++i) {
    ASSERT_EQ(buffer[i], static_cast<std::int64_t>(i) * 3 + root);
  }
  for (std::size_t at = 0; at < all.size(); ++at) {
    ASSERT_EQ(all[at], static_cast<std::int64_t>(at % width * 3 + at / width));
  }
}

void check_started_and_planned(const ProcessRank& self) {
  const auto input = own_values(self, 500);
  std::vector<std::int64_t> sum(input.size());
  std::vector<std::int64_t> planned(input.size());
  unisono_plan_t plan = nullptr;
  ASSERT_TRUE(succeeded(unisono_allreduce_plan(input.data(), planned.data(), 500, UNISONO_INT64,
                                               UNISONO_SUM, self.world, &plan)));
  for (int round = 0; round < 20; ++round) {
    std::fill(planned.begin(), planned.end(), 0);
    unisono_request_t requests[2] = {};
    ASSERT_TRUE(succeeded(unisono_allreduce_start(input.data(), sum.data(), 500, UNISONO_INT64,
                                                  UNISONO_SUM, self.world, &requests[0])));
    ASSERT_TRUE(succeeded(unisono_plan_start(plan)));
    ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &requests[1])));
    ASSERT_TRUE(succeeded(unisono_wait_all(requests, 2)));
    ASSERT_TRUE(succeeded(unisono_plan_wait(plan)));
    ASSERT_EQ(sum, planned);
    ASSERT_EQ(sum[499], expected_sum(self.ranks, 499));
  }
  ASSERT_TRUE(succeeded(unisono_plan_free(plan)));
}

void check_parts(const ProcessRank& self) {
  unisono_comm_t part = nullptr;
  ASSERT_TRUE(succeeded(unisono_comm_split(self.world, self.rank % 2, -self.rank, &part)));
  int size = 0;
  ASSERT_TRUE(succeeded(unisono_comm_size(part, &size)));
  std::vector<int> members(static_cast<std::size_t>(size));
  ASSERT_TRUE(succeeded(unisono_allgather(&self.rank, members.data(), 1, UNISONO_INT32, part)));
  int expected = (self.ranks - 1) % 2 == self.rank % 2 ? self.ranks - 1 : self.ranks - 2;
  for (const int member : members) {
    ASSERT_EQ(member, expected);
    expected -= 2;
  }
  ASSERT_TRUE(succeeded(unisono_comm_free(part)));
}

void check_blocks(const ProcessRank& self) {
  int turn = 0;
  for (const std::int64_t count : {0, 1, 8, 1000, static_cast<int>(scaled(100003))}) {
    SCOPED_TRACE(count);
    for (const Way way : kWays) {
      const bool in_place = ++turn % 2 == 0;
      const Words counts = unequal_counts(self.ranks, count);
      ASSERT_NO_FATAL_FAILURE(check_equal_blocks(self, count, turn % self.ranks, in_place, way));
      ASSERT_NO_FATAL_FAILURE(check_unequal_blocks(self, counts, in_place, way));
      ASSERT_NO_FATAL_FAILURE(check_equal_blocks(self, count, turn % self.ranks, !in_place, way));
      ASSERT_NO_FATAL_FAILURE(check_own_blocks(self, count, turn % self.ranks, in_place, way));
    }
  }
}

void check_everything(const ProcessRank& self) {
  for (const std::int64_t count :
       {0, 1, 7, 8, 64, 1000, 8192, 100003, static_cast<int>(scaled(1000000))}) {
    SCOPED_TRACE(count);
    for (const int root : {0, self.ranks - 1}) {
      ASSERT_NO_FATAL_FAILURE(check_reductions(self, count, root));
    }
    ASSERT_NO_FATAL_FAILURE(check_moves(self, count, self.ranks / 2));
  }
  ASSERT_NO_FATAL_FAILURE(check_started_and_planned(self));
  ASSERT_NO_FATAL_FAILURE(check_parts(self));
  ASSERT_NO_FATAL_FAILURE(check_blocks(self));
}

using Environment = std::map<std::string, std::string>;

void run_everything(int ranks, const Environment& environment) {
  ProcessJob::Options options;
  options.environment = environment;
  ProcessJob job(ranks, check_everything, options);
  job.expect_all_clean();
}

struct Setup {
  const char* name;
  Environment environment;
};

void PrintTo(const Setup& setup, std::ostream* out) { *out << setup.name; }

class Results : public testing::TestWithParam<Setup> {};

TEST_P(Results, OfEveryCollective) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    SCOPED_TRACE(ranks);
    run_everything(ranks, GetParam().environment);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Setups, Results,
    testing::Values(Setup{"Default", {}}, Setup{"Inline", {{"UNISONO_ENGINE", "inline"}}},
                    Setup{"Helping", {{"UNISONO_ENGINE", "helping"}}},
                    Setup{"NoSpin", {{"UNISONO_SPIN", "0"}}},
                    Setup{"SingleCopy",
                          {{"UNISONO_SINGLE_COPY", "on"}, {"UNISONO_SINGLE_COPY_FROM", "64"}}},
                    Setup{"NoSingleCopy", {{"UNISONO_SINGLE_COPY", "off"}}},
                    Setup{"TwoChannels", {{"UNISONO_CHANNELS", "2"}}},
                    Setup{"SmallBuffers", {{"UNISONO_BUFFERS", "64K"}}},
                    Setup{"Proved", {{"UNISONO_CHECK", "on"}}}),
    [](const auto& suite) { return std::string(suite.param.name); });

// ---- sequence numbers that wrap ----

class SequenceWrap : public testing::TestWithParam<const char*> {};

TEST_P(SequenceWrap, InTheMiddleOfARun) {
  ProcessJob::Options options;
  options.environment["UNISONO_FIRST_SEQUENCE"] = GetParam();
  ProcessJob job(
      3,
      [](ProcessRank& self) {
        // Operations that ranks run ahead in, and ones that hold them together, across the wrap.
        for (int i = 0; i < 300; ++i) {
          std::int64_t value = self.rank == i % 3 ? i : -1;
          std::int64_t sum = 0;
          ASSERT_TRUE(succeeded(unisono_broadcast(&value, 1, UNISONO_INT64, i % 3, self.world)));
          ASSERT_EQ(value, i);
          if (i % 7 != 0) continue;
          ASSERT_TRUE(succeeded(
              unisono_allreduce(&value, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world)));
          ASSERT_EQ(sum, 3 * i);
        }
        ASSERT_NO_FATAL_FAILURE(check_started_and_planned(self));
        ASSERT_NO_FATAL_FAILURE(check_parts(self));
      },
      options);
  job.expect_all_clean();
}

// A few before the wrap of 8, 16, 31, 32 and 40 bits, wherever a narrower copy of it may lie.
INSTANTIATE_TEST_SUITE_P(First, SequenceWrap,
                         testing::Values("206", "65486", "2147483598", "4294967246",
                                         "1099511627726"),
                         [](const auto& suite) { return std::string("At") + suite.param; });

// ---- several jobs ----

TEST(TwoJobs, AtOnceOnOneMachine) {
  ProcessJob first(3, check_everything);
  ProcessJob second(4, check_everything);
  first.expect_all_clean();
  second.expect_all_clean();
  EXPECT_NE(first.token(), second.token());
}

TEST(TwoJobs, OneIsKilledAndTheOtherDoesNotNotice) {
  ProcessJob doomed(3, [](ProcessRank& self) {
    self.say("ready");
    while (unisono_barrier(self.world) == UNISONO_OK) {
    }
  });
  ProcessJob other(3, check_everything);
  doomed.await_line_of_all();
  for (int rank = 0; rank < 3; ++rank) doomed.signal(rank, SIGKILL);
  other.expect_all_clean();
}

}  // namespace
}  // namespace unisono::harness
