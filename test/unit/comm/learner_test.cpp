// SPDX-License-Identifier: BSD-3-Clause
// Learning in a job (learner): ranks are threads, and the times of calls are given, so that the
// outcome is known. Results are right while candidates are tried.
#include "comm/learning/learner.hpp"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/learning/learned_calls.hpp"
#include "harness/calls.hpp"
#include "harness/json_values.hpp"
#include "harness/rank_threads.hpp"
#include "harness/temporary_folder.hpp"

namespace unisono::comm::learner_test {
namespace {

using test::allreduce;
using test::RankThread;
using test::RankThreads;

constexpr int kCalls = 4096;

struct Learned {
  std::string algorithm;  // of the last call
  std::string fastest;    // of the candidates
  std::vector<std::string> decisions;
  std::int64_t trials = 0;
};

// The last candidate, which the machine file calls the dearest, takes 2 us and all others 10.
std::string last_candidate(Communicator& world, const plan::Call& call) {
  const auto candidates = world.plans().alternatives(call);
  return candidates.empty() ? "" : candidates.back().name;
}
void make_last_fastest(Communicator& world) {
  LearnedCalls(world).learner()->measure_by(
      [fastest = last_candidate(world, allreduce(4))](const plan::Plan& plan) {
        return plan.algorithm == fastest ? 2'000 : 10'000;
      });
}

// Each rank makes the calls, and checks each result.
std::vector<Learned> learn(const std::vector<int>& hosts, const base::Environment& settings,
                           int calls = kCalls) {
  RankThreads job(hosts, settings);
  std::vector<Learned> all(hosts.size());
  const auto ranks = static_cast<double>(hosts.size());
  job.run([&](RankThread& self) {
    ASSERT_TRUE(job.enter(self).ok());
    Learner* const learner = LearnedCalls(*self.world).learner();
    if (learner != nullptr) make_last_fastest(*self.world);
    std::array<double, 4> input{1, 2, 3, 4}, output{};
    for (int i = 0; i < calls; ++i) {
      input[0] = i;
      ASSERT_TRUE(self.world->run(allreduce(4), input.data(), output.data()).ok()) << i;
      ASSERT_EQ(output[0], i * ranks);
      ASSERT_EQ(output[3], 4 * ranks);
    }
    Learned& learned = all[static_cast<std::size_t>(self.rank)];
    const auto candidates = self.world->plans().alternatives(allreduce(4));
    if (!candidates.empty()) learned.fastest = candidates.back().name;
    learned.algorithm = self.world->statistics().last_plan->algorithm;
    if (learner != nullptr) {
      learned.decisions = learner->decisions();
      learned.trials = learner->trials();
    }
  });
  job.run([](RankThread& self) {
    self.world.reset();
    self.job.reset();
  });
  return all;
}

TEST(Learner, FindsTheFastestWithin4096CallsAlikeOnAllRanks) {
  const auto all = learn({0, 0, 0}, {{"UNISONO_LEARN", "on"}});
  for (const Learned& each : all) {
    EXPECT_EQ(each.algorithm, each.fastest);
    EXPECT_EQ(each.decisions, all.front().decisions);
    ASSERT_EQ(each.decisions.size(), 1U);
    EXPECT_TRUE(each.decisions[0].starts_with("allreduce(count 4, float64, sum): " + each.fastest +
                                              " in place of "))
        << each.decisions[0];
    EXPECT_GE(each.trials, select::Lesson::kTimes);
    EXPECT_LE(each.trials, kCalls / 64);
  }
}

TEST(Learner, BetweenHosts) {
  const auto all = learn({0, 1, 1}, {{"UNISONO_LEARN", "on"}});
  for (const Learned& each : all) {
    EXPECT_EQ(each.algorithm, each.fastest);
    EXPECT_EQ(each.decisions, all.front().decisions);
  }
}

TEST(Learner, IsOffByDefault) {
  for (const Learned& each : learn({0, 0}, {}, 200)) {
    EXPECT_NE(each.algorithm, each.fastest);
    EXPECT_EQ(each.trials, 0);
  }
}

TEST(Learner, IsFrozenAfterSoManyOperations) {
  const auto free = learn({0, 0}, {{"UNISONO_LEARN", "on"}}, 640);
  const auto frozen = learn({0, 0}, {{"UNISONO_LEARN", "on"}, {"UNISONO_LEARN_UNTIL", "320"}}, 640);
  EXPECT_GE(free[0].trials, 8);
  EXPECT_LE(frozen[0].trials, 4);
  EXPECT_GE(frozen[0].trials, 3);
}

TEST(Learner, AUsersRuleIsNotReplaced) {
  const auto all = learn(
      {0, 0}, {{"UNISONO_LEARN", "on"}, {"UNISONO_ALGORITHM", "allreduce:gather-release"}}, 640);
  EXPECT_TRUE(all[0].algorithm.starts_with("gather-release")) << all[0].algorithm;
  EXPECT_EQ(all[0].trials, 0);
}

TEST(Learner, TheProfileOfARankNamesItsDecisions) {
  const test::TemporaryFolder folder;
  const auto all =
      learn({0, 0, 0}, {{"UNISONO_LEARN", "on"}, {"UNISONO_PROFILE", folder.path() + "/p"}});
  for (int rank = 0; rank < 3; ++rank) {
    std::ifstream file(folder.path() + "/p." + std::to_string(rank));
    std::string last;
    for (std::string line; std::getline(file, line);) last = line;
    EXPECT_EQ(harness::JsonValues::of(last).texts("learned"), all[0].decisions);
    EXPECT_FALSE(all[0].decisions.empty());
  }
}

// An allreduce of 4 elements by three ranks, split-phase; by which algorithm.
void start_and_wait(RankThread& self, std::string& algorithm) {
  std::array<double, 4> input{1, 2, 3, 4}, output{};
  Pending pending;
  const auto plan = self.world->plan(allreduce(4));
  ASSERT_TRUE(plan.ok());
  ASSERT_TRUE(self.world->start(**plan, input.data(), output.data(), pending).ok());
  Pending* const awaited[] = {&pending};
  Communicator* const own[] = {self.world.get()};
  Communicator::wait_any(own, awaited);
  ASSERT_EQ(output[3], 12);
  algorithm = pending.operation.plan->algorithm;
}

// Calls of other kinds lie between, and some are started. Each kind has its own choice.
TEST(Learner, KindsOfCallsLearnApart) {
  RankThreads job({0, 0, 0}, {{"UNISONO_LEARN", "on"}});
  std::mutex mutex;
  std::vector<std::vector<std::string>> decisions;
  job.run([&](RankThread& self) {
    ASSERT_TRUE(job.enter(self).ok());
    Learner& learner = *LearnedCalls(*self.world).learner();
    learner.measure_by([of_four = last_candidate(*self.world, allreduce(4)),
                        of_five = self.world->plans().alternatives(allreduce(5)).front().name](
                           const plan::Plan& plan) {
      return plan.algorithm == (plan.count == 4 ? of_four : of_five) ? 2'000 : 10'000;
    });
    std::array<double, 5> input{1, 2, 3, 4, 5}, output{};
    for (int i = 0; i < 4'000; ++i) {
      ASSERT_TRUE(self.world->run(allreduce(4), input.data(), output.data()).ok());
      ASSERT_TRUE(self.world->run(allreduce(5), input.data(), output.data()).ok());
      ASSERT_EQ(output[4], 15);
      if (i % 16 != 0) continue;
      std::string by;
      ASSERT_NO_FATAL_FAILURE(start_and_wait(self, by));
    }
    const std::lock_guard lock(mutex);
    decisions.push_back(learner.decisions());
  });
  job.run([](RankThread& self) {
    self.world.reset();
    self.job.reset();
  });
  ASSERT_EQ(decisions.size(), 3U);
  EXPECT_EQ(decisions[0], decisions[1]);
  EXPECT_EQ(decisions[0], decisions[2]);
  ASSERT_EQ(decisions[0].size(), 1U);
  EXPECT_TRUE(decisions[0][0].starts_with("allreduce(count 4, ")) << decisions[0][0];
}

// The state of a rank after its calls have settled.
struct Settled {
  bool is_plain = false;               // the last call went without the learner and its records
  std::string algorithm;               // of the last blocking call
  std::string started;                 // of a started one
  std::int64_t calls_before = 0;       // that came to the learner
  std::int64_t calls_after = 0;        // and after some more calls
  std::vector<std::string> decisions;  // of the learner
};

// The candidate that is called `fastest` takes 2 us and all others 10.
std::vector<Settled> settle(const base::Environment& settings,
                            std::string (*fastest)(Communicator&, const plan::Call&)) {
  RankThreads job({0, 0, 0}, settings);
  std::vector<Settled> all(3);
  job.run([&](RankThread& self) {
    ASSERT_TRUE(job.enter(self).ok());
    Learner& learner = *LearnedCalls(*self.world).learner();
    learner.measure_by([name = fastest(*self.world, allreduce(4))](const plan::Plan& plan) {
      return plan.algorithm == name ? 2'000 : 10'000;
    });
    std::array<double, 4> input{1, 2, 3, 4}, output{};
    const auto call_some = [&](int calls) {
      for (int i = 0; i < calls; ++i) {
        input[0] = i;
        ASSERT_TRUE(self.world->run(allreduce(4), input.data(), output.data()).ok()) << i;
        ASSERT_EQ(output[0], i * 3.0);
      }
    };
    call_some(2 * kCalls);
    Settled& settled = all[static_cast<std::size_t>(self.rank)];
    settled.calls_before = learner.calls();
    call_some(200);
    settled.calls_after = learner.calls();
    settled.decisions = learner.decisions();
    const plan::Plan& last = *self.world->statistics().last_plan;
    settled.is_plain = !last.has_extras;
    settled.algorithm = last.algorithm;
    std::string by;
    ASSERT_NO_FATAL_FAILURE(start_and_wait(self, by));
    settled.started = by;
  });
  job.run([](RankThread& self) {
    self.world.reset();
    self.job.reset();
  });
  return all;
}

std::string usual_candidate(Communicator& world, const plan::Call& call) {
  const auto candidates = world.plans().alternatives(call);
  return candidates.empty() ? "" : candidates.front().name;
}

TEST(Learner, SettledCallsOfAReplacedAlgorithmTakeThePlainPath) {
  for (const Settled& each : settle({{"UNISONO_LEARN", "on"}}, last_candidate)) {
    ASSERT_EQ(each.decisions.size(), 1U);
    EXPECT_TRUE(each.is_plain);
    EXPECT_LT(each.calls_before, 2 * kCalls);
    EXPECT_EQ(each.calls_after, each.calls_before);
    EXPECT_NE(each.decisions[0].find(": " + each.algorithm + " in place of " + each.started),
              std::string::npos)
        << each.decisions[0];
  }
}

TEST(Learner, SettledCallsOfTheUsualAlgorithmTakeThePlainPath) {
  for (const Settled& each : settle({{"UNISONO_LEARN", "on"}}, usual_candidate)) {
    EXPECT_TRUE(each.decisions.empty());
    EXPECT_TRUE(each.is_plain);
    EXPECT_LT(each.calls_before, 2 * kCalls);
    EXPECT_EQ(each.calls_after, each.calls_before);
    EXPECT_EQ(each.algorithm, each.started);
  }
}

TEST(Learner, FrozenCallsTakeThePlainPath) {
  const auto all =
      settle({{"UNISONO_LEARN", "on"}, {"UNISONO_LEARN_UNTIL", "320"}}, last_candidate);
  for (const Settled& each : all) {
    EXPECT_TRUE(each.is_plain);
    EXPECT_LE(each.calls_before, 321);
    EXPECT_EQ(each.calls_after, each.calls_before);
  }
}

TEST(Learner, SettledCallsAreStillRecorded) {
  const test::TemporaryFolder folder;
  const auto all =
      settle({{"UNISONO_LEARN", "on"}, {"UNISONO_PROFILE", folder.path() + "/p"}}, last_candidate);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(all[0].calls_after, all[0].calls_before);
    std::ifstream file(folder.path() + "/p." + std::to_string(rank));
    std::int64_t calls = 0;
    for (std::string line; std::getline(file, line);) {
      const auto row = harness::JsonValues::of(line);
      if (!row.has("collective") || row.text("collective") != "allreduce") continue;
      calls += row.integer("calls");
    }
    EXPECT_EQ(calls, 2 * kCalls + 201);
  }
}

// One rank starts what the others call: their epochs differ, and so do their calls.
TEST(Learner, RanksThatCallInDifferentFormsGetAnError) {
  RankThreads job({0, 0}, {{"UNISONO_LEARN", "on"}});
  std::array<bool, 2> failed{};
  job.run([&](RankThread& self) {
    ASSERT_TRUE(job.enter(self).ok());
    make_last_fastest(*self.world);
    std::array<double, 4> input{1, 2, 3, 4}, output{};
    for (int i = 0; i < kCalls && !failed[static_cast<std::size_t>(self.rank)]; ++i) {
      if (self.rank == 0) {
        failed[0] = !self.world->run(allreduce(4), input.data(), output.data()).ok();
        continue;
      }
      Pending pending;
      const auto plan = self.world->plan(allreduce(4));
      ASSERT_TRUE(plan.ok());
      if (!self.world->start(**plan, input.data(), output.data(), pending).ok()) {
        failed[1] = true;
        break;
      }
      Pending* const awaited[] = {&pending};
      Communicator* const own[] = {self.world.get()};
      Communicator::wait_any(own, awaited);
      failed[1] = pending.state != Pending::State::complete;
    }
  });
  EXPECT_TRUE(failed[0]);
  EXPECT_TRUE(failed[1]);
  job.run([](RankThread& self) {
    self.world.reset();
    self.job.reset();
  });
}

}  // namespace
}  // namespace unisono::comm::learner_test
