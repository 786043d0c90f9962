// SPDX-License-Identifier: BSD-3-Clause
// Learning from measured times (lesson): which operations are trials, what times change the choice,
// and what times do not. Ranks are simulated.
#include "select/lesson.hpp"

#include <gtest/gtest.h>

#include "base/prng.hpp"

namespace unisono::select::lesson_test {
namespace {

constexpr std::int64_t kMicrosecond = 1000;

void add_times(Lesson& lesson, std::size_t candidate, std::int64_t ns, int times = Lesson::kTimes) {
  for (int i = 0; i < times; ++i) lesson.add(candidate, ns);
}

// With one rank.
Lesson::Decision decide(Lesson& lesson, std::size_t candidates) {
  std::vector<std::int64_t> medians;
  for (std::size_t i = 0; i < candidates; ++i) medians.push_back(lesson.median_ns(i));
  return lesson.decide(medians, candidates);
}

TEST(Trial, AreAtMostOneIn64OfAnyNumberOfOperations) {
  for (const std::uint64_t seed : {0U, 1U, 77U}) {
    std::uint64_t trials = 0;
    for (std::uint64_t operation = 0; operation < 100'000; ++operation) {
      trials += is_trial(seed, operation) ? 1 : 0;
      ASSERT_LE(trials * 64, operation + 1) << "seed " << seed;
    }
    EXPECT_GE(trials, 100'000 / 64 - 2) << "seed " << seed;
  }
}

TEST(Trial, FollowFromTheSeedAlone) {
  const auto of_seed = [](std::uint64_t seed) {
    std::vector<std::uint64_t> trials;
    for (std::uint64_t operation = 0; operation < 10'000; ++operation) {
      if (is_trial(seed, operation)) trials.push_back(operation);
    }
    return trials;
  };
  EXPECT_EQ(of_seed(5), of_seed(5));
  EXPECT_NE(of_seed(5), of_seed(6));
}

// A program that makes one kind of call at every second operation has as many trials of it.
TEST(Trial, MeetCallsOfAnyPeriod) {
  for (const std::uint64_t period : {2U, 3U, 8U, 64U}) {
    std::uint64_t met = 0;
    for (std::uint64_t operation = 0; operation < 640'000; operation += period) {
      met += is_trial(1, operation) ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(met * period), 10'000, 1'500) << "period " << period;
  }
}

// The model is wrong: it calls a slow candidate the cheapest, and the fastest one nearly three
// times as dear. Each rank measures times of its own, with noise and now and then a lost time
// slice.
TEST(Lesson, FindsTheFastestWithin4096CallsAlikeOnAllRanks) {
  const std::vector<std::int64_t> true_ns = {20'000, 18'500, 40'000, 9'000, 30'000, 25'000};
  constexpr std::size_t kRanks = 5;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    base::Prng prng(seed);
    std::vector<Lesson> ranks(kRanks, Lesson(true_ns.size()));
    for (std::uint64_t operation = 0; operation < 4096; ++operation) {
      if (operation % 1024 == 0 && ranks.front().is_ready()) {
        std::vector<std::int64_t> medians;
        for (const Lesson& rank : ranks) {
          EXPECT_TRUE(rank.is_ready());
          for (std::size_t i = 0; i < true_ns.size(); ++i) medians.push_back(rank.median_ns(i));
        }
        for (Lesson& rank : ranks) rank.decide(medians, true_ns.size());
      }
      const std::size_t tried = ranks.front().current();
      for (Lesson& rank : ranks) {
        ASSERT_EQ(rank.current(), tried);
        const Lesson::Turn turn = rank.next(is_trial(seed, operation));
        if (!turn.is_measured) continue;
        const std::int64_t noise = static_cast<std::int64_t>(prng.below(4000));
        const std::int64_t lost = prng.below(10) == 0 ? 4'000'000 : 0;
        rank.add(turn.candidate, true_ns[turn.candidate] + noise + lost);
      }
    }
    EXPECT_EQ(ranks.front().current(), 3U) << "seed " << seed;
  }
}

TEST(Lesson, BadTimesChangeNothingUpToFourInADirection) {
  Lesson lesson(2);
  add_times(lesson, 0, 10 * kMicrosecond, 20);
  add_times(lesson, 1, 20 * kMicrosecond, 5);
  add_times(lesson, 1, 0, 4);
  ASSERT_TRUE(lesson.is_ready());
  EXPECT_EQ(decide(lesson, 2).after, 0U);
}

TEST(Lesson, ABadTimeOfThePresentCandidateDoesNotReplaceIt) {
  Lesson lesson(2);
  add_times(lesson, 0, 10 * kMicrosecond, 8);
  lesson.add(0, 1'000'000 * kMicrosecond);
  add_times(lesson, 1, 10 * kMicrosecond);
  ASSERT_TRUE(lesson.is_ready());
  EXPECT_EQ(decide(lesson, 2).after, 0U);
}

TEST(Lesson, IsNotReadyWithFewTimes) {
  Lesson lesson(2);
  add_times(lesson, 0, 10 * kMicrosecond);
  add_times(lesson, 1, kMicrosecond, Lesson::kTimes - 1);
  EXPECT_FALSE(lesson.is_ready());
  EXPECT_EQ(lesson.median_ns(1), Lesson::kNoTime);
  lesson.add(1, kMicrosecond);
  EXPECT_TRUE(lesson.is_ready());
  EXPECT_EQ(decide(lesson, 2).after, 1U);
  EXPECT_FALSE(lesson.is_ready()) << "times count for one decision only";
}

TEST(Lesson, SmallDifferencesDoNotReplace) {
  Lesson lesson(2);
  add_times(lesson, 0, 1000);
  add_times(lesson, 1, 920);
  EXPECT_EQ(decide(lesson, 2).after, 0U);
}

TEST(Lesson, WeighsAllRanks) {
  // Faster on one rank by 2 us, and slower on the other by 8 us.
  Lesson lesson(2);
  add_times(lesson, 0, 10'000);
  add_times(lesson, 1, 8'000);
  const std::vector<std::int64_t> medians = {10'000, 8'000, 10'000, 18'000};
  EXPECT_EQ(lesson.decide(medians, 2).after, 0U);
}

TEST(Lesson, ARankWithoutAMedianChangesNothing) {
  Lesson lesson(2);
  add_times(lesson, 0, 10'000);
  add_times(lesson, 1, 1'000);
  const std::vector<std::int64_t> medians = {10'000, 1'000, 10'000, Lesson::kNoTime};
  EXPECT_EQ(lesson.decide(medians, 2).after, 0U);
}

TEST(Lesson, WhatIsFarSlowerIsNotTriedAgain) {
  Lesson lesson(3);
  add_times(lesson, 0, 1000);
  add_times(lesson, 1, 1600);
  add_times(lesson, 2, 1400);
  EXPECT_EQ(decide(lesson, 3).dropped, 1);
  EXPECT_TRUE(lesson.is_dropped(1));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(lesson.next(true).candidate, 2U);
}

TEST(Lesson, SettlesOnceAllOthersAreDroppedOrLostTwice) {
  Lesson lesson(3);
  add_times(lesson, 0, 1000);
  add_times(lesson, 1, 1600);  // dropped
  EXPECT_FALSE(lesson.has_settled());
  decide(lesson, 3);
  EXPECT_FALSE(lesson.has_settled()) << "the third was not compared yet";
  add_times(lesson, 2, 1400);
  decide(lesson, 3);
  EXPECT_FALSE(lesson.has_settled()) << "it lost once";
  add_times(lesson, 2, 1400);
  EXPECT_EQ(decide(lesson, 3).after, 0U);
  EXPECT_TRUE(lesson.has_settled());
}

TEST(Lesson, DecisionsBeforeAChangeDoNotSettleIt) {
  Lesson lesson(3);
  add_times(lesson, 0, 1000);
  for (int i = 0; i < Lesson::kLostDecisions; ++i) {
    add_times(lesson, 1, 1100);
    EXPECT_EQ(decide(lesson, 3).after, 0U);
  }
  add_times(lesson, 2, 800);
  EXPECT_EQ(decide(lesson, 3).after, 2U);
  EXPECT_FALSE(lesson.has_settled()) << "nothing was compared with the new one";
}

TEST(Lesson, WithOneCandidateThereIsNothingToTry) {
  Lesson lesson(1);
  for (int i = 0; i < 10; ++i) {
    const Lesson::Turn turn = lesson.next(true);
    EXPECT_EQ(turn.candidate, 0U);
    EXPECT_FALSE(turn.is_measured);
  }
  EXPECT_TRUE(lesson.has_settled());
}

}  // namespace
}  // namespace unisono::select::lesson_test
