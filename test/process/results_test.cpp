// SPDX-License-Identifier: BSD-3-Clause
// Results between real processes, which map memory at different addresses: collectives of all
// sizes, split-phase, plans and communicators, with each engine, with and without single copies,
// and with sequence numbers that wrap meanwhile.
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "harness/all_results.hpp"
#include "harness/outcome.hpp"
#include "process/ranks.hpp"
#include "process/word.hpp"

namespace unisono::harness::results_test {
namespace {

using Environment = std::map<std::string, std::string>;

void run_everything(int ranks, const Environment& environment) {
  ProcessJob::Options options;
  options.environment = environment;
  ProcessJob job(
      ranks, [](ProcessRank& self) { check_everything(self); }, options);
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
    testing::Values(
        Setup{"Default", {}}, Setup{"Inline", {{"UNISONO_ENGINE", "inline"}}},
        Setup{"Helping", {{"UNISONO_ENGINE", "helping"}}}, Setup{"NoSpin", {{"UNISONO_SPIN", "0"}}},
        Setup{"SingleCopy", {{"UNISONO_SINGLE_COPY", "on"}, {"UNISONO_SINGLE_COPY_FROM", "64"}}},
        Setup{"NoSingleCopy", {{"UNISONO_SINGLE_COPY", "off"}}},
        Setup{"TwoChannels", {{"UNISONO_CHANNELS", "2"}}},
        Setup{"SmallBuffers", {{"UNISONO_BUFFERS", "64K"}}},
        Setup{"Agent", {{"UNISONO_AGENT", "on"}}}, Setup{"Proved", {{"UNISONO_CHECK", "on"}}}),
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
  ProcessJob first(3, [](ProcessRank& self) { check_everything(self); });
  ProcessJob second(4, [](ProcessRank& self) { check_everything(self); });
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
  ProcessJob other(3, [](ProcessRank& self) {
    const Word killed;
    check_everything(self);
    self.say("ready");
    killed.await();
    check_everything(self);
  });
  doomed.await_line_of_all();
  other.await_line_of_all();
  for (int rank = 0; rank < 3; ++rank) doomed.signal(rank, SIGKILL);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(doomed.wait(rank).status, SIGKILL);
  for (int rank = 0; rank < 3; ++rank) other.signal(rank, kWord);
  other.expect_all_clean();
}

}  // namespace
}  // namespace unisono::harness::results_test
