// SPDX-License-Identifier: BSD-3-Clause
// How all ranks of a job sum, and whether one of them computes, is as rank 0 says, on all hosts. A
// rank that says something else fails the start, and every rank gets its error
// (job/start/exchanges.hpp).
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "harness/rank_threads.hpp"

namespace unisono::test::agree_on_sums_test {
namespace {

constexpr int kRanks = 5;

class SumsOfTheJob : public ::testing::TestWithParam<std::vector<int>> {
 protected:
  static base::Environment wish(const char* value) { return {{"UNISONO_REPRODUCIBLE", value}}; }
};

TEST_P(SumsOfTheJob, AreThoseOfRank0) {
  std::vector<base::Environment> own(kRanks);
  own[0] = wish("ranks");
  own[3] = wish("ranks");
  RankThreads job(GetParam(), {}, own);
  job.run([&job](RankThread& self) {
    const base::Status entered = job.enter(self);
    ASSERT_TRUE(entered.ok()) << entered.error().message;
    EXPECT_EQ(self.job->reproducible, base::Reproducible::of_ranks) << "rank " << self.rank;
  });
}

TEST_P(SumsOfTheJob, AreAnyOrderIfNoRankAsks) {
  RankThreads job(GetParam(), {}, {});
  job.run([&job](RankThread& self) {
    const base::Status entered = job.enter(self);
    ASSERT_TRUE(entered.ok()) << entered.error().message;
    EXPECT_EQ(self.job->reproducible, base::Reproducible::no) << "rank " << self.rank;
  });
}

// Rank 0 need not have set anything.
TEST_P(SumsOfTheJob, WithAnotherWishNoRankStartsAndEachSaysWhy) {
  for (const bool is_first_set : {false, true}) {
    std::vector<base::Environment> own(kRanks);
    if (is_first_set) own[0] = wish("ranks");
    own[4] = wish("1");
    RankThreads job(GetParam(), {}, own);
    std::atomic<int> refused{0};
    job.run([&](RankThread& self) {
      const base::Status entered = job.enter(self);
      ASSERT_FALSE(entered.ok());
      EXPECT_EQ(entered.error().code, base::Code::argument) << entered.error().message;
      const std::string wanted = std::string("rank 4: UNISONO_REPRODUCIBLE is 1, but rank 0 has ") +
                                 (is_first_set ? "ranks" : "0");
      EXPECT_NE(entered.error().message.find(wanted), std::string::npos) << entered.error().message;
      ++refused;
    });
    EXPECT_EQ(refused, kRanks);
  }
}

// The same of UNISONO_HETEROGENEOUS.
TEST_P(SumsOfTheJob, AreOfOneRankIfRank0SaysSo) {
  std::vector<base::Environment> own(kRanks);
  own[0] = {{"UNISONO_HETEROGENEOUS", "on"}};
  RankThreads job(GetParam(), {}, own);
  job.run([&job](RankThread& self) {
    const base::Status entered = job.enter(self);
    ASSERT_TRUE(entered.ok()) << entered.error().message;
    EXPECT_TRUE(self.job->heterogeneous) << "rank " << self.rank;
  });
}

TEST_P(SumsOfTheJob, OfOneRankAtTheWishOfAnotherRankStartNoJob) {
  std::vector<base::Environment> own(kRanks);
  own[3] = {{"UNISONO_HETEROGENEOUS", "on"}};
  RankThreads job(GetParam(), {}, own);
  job.run([&job](RankThread& self) {
    const base::Status entered = job.enter(self);
    ASSERT_FALSE(entered.ok());
    EXPECT_EQ(entered.error().code, base::Code::argument) << entered.error().message;
    EXPECT_NE(entered.error().message.find(
                  "rank 3: UNISONO_HETEROGENEOUS is on, but rank 0 has off; set it alike"),
              std::string::npos)
        << entered.error().message;
  });
}

INSTANTIATE_TEST_SUITE_P(Hosts, SumsOfTheJob,
                         testing::Values(std::vector{0, 0, 0, 0, 0}, std::vector{0, 1, 0, 1, 1},
                                         std::vector{0, 1, 2, 3, 4}),
                         [](const auto& suite) { return "Case" + std::to_string(suite.index); });

}  // namespace
}  // namespace unisono::test::agree_on_sums_test
