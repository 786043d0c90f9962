// SPDX-License-Identifier: BSD-3-Clause
// Jobs whose barriers ask in the NIC path (barrier/test-and-set): no rank leaves early, in whatever
// order ranks come. Each rank sends one contribution. While a rank is late, the number of questions
// grows with the logarithm of the wait, and later by one for each longest delay. A rank that dies
// ends the barrier as any other barrier.
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "engine/nic/nic_patience.hpp"
#include "model/default_machine.hpp"
#include "nic/job/nic_job.hpp"
#include "nic/job/shared_counts.hpp"
#include "nic/port/vector_limit.hpp"

namespace unisono::harness::asking_job_test {
namespace {

constexpr int kMostRanks = 8;
constexpr std::size_t kAtOnce = nic::kInFlightMax + 1;
// Before that a root has asked as often as a test wants, unless it never will.
constexpr std::int64_t kLongest = 60 * base::kSecond;

// Questions that a root asks which waits for so long: one when it comes, and those by back-off.
std::uint64_t most_questions(std::int64_t waited_ns) {
  const auto ns = [](model::Constant constant) {
    return static_cast<std::int64_t>(model::constant_of(model::default_machine(), constant).ns());
  };
  const std::int64_t most_ns = ns(model::Constant::nic_back_off_most);
  std::int64_t delay_ns = ns(model::Constant::nic_back_off);
  std::uint64_t questions = 1;
  for (std::int64_t due_ns = delay_ns; due_ns <= waited_ns; due_ns += delay_ns) {
    ++questions;
    delay_ns = std::min(2 * delay_ns, most_ns);
  }
  return questions;
}

// A barrier that is done has been called by all ranks.
void look(unisono_request_t& request, const std::atomic<int>& come, int ranks) {
  if (request == nullptr) return;
  int done = 0;
  ASSERT_TRUE(succeeded(unisono_test(&request, &done)));
  if (done != 0) {
    ASSERT_EQ(come, ranks) << "it ended early";
  }
}

class NicAskingJob : public NicJob {
 protected:
  void SetUp() override {
    NicJob::SetUp();
    environment_ = {{"UNISONO_ALGORITHM", "barrier:test-and-set"}};
  }
  std::uint64_t questions() const { return counted(0, UNISONO_NIC_QUERIED); }
  std::uint64_t sent_up() const { return counted(UNISONO_NIC_SENT_UP); }

  // All orders of arrival differ; a late rank comes when those before it have.
  void expect_order_kept(int barriers, const Environment& environment = {}) const {
    const SharedCounts come(static_cast<std::size_t>(barriers));
    auto processes = start_job(
        [&come, barriers](const NicRank& self) {
          const Turns turns(come);
          base::Prng together(11);
          for (std::size_t i = 0; std::cmp_less(i, barriers); ++i) {
            turns.await(i, turn_of(self, together));
            ++come[i];
            ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
            ASSERT_EQ(come[i], self.ranks) << "a rank left early";
          }
          leave(self);
        },
        environment);
    expect_all_clean(processes);
  }

  // The rank's place in the next random order, which all ranks draw alike.
  static int turn_of(const NicRank& self, base::Prng& together) {
    std::array<int, kMostRanks> turn = {};
    for (int rank = 0; rank < self.ranks; ++rank) turn[static_cast<std::size_t>(rank)] = rank;
    for (int last = self.ranks - 1; last > 0; --last) {
      std::swap(turn[static_cast<std::size_t>(last)],
                turn[together.below(static_cast<std::uint64_t>(last) + 1)]);
    }
    return turn[static_cast<std::size_t>(self.rank)];
  }
};

TEST_F(NicAskingJob, NobodyLeavesEarlyInWhateverOrderRanksCome) {
  constexpr int kBarriers = 300;
  start_daemons();
  expect_order_kept(kBarriers);
  EXPECT_EQ(operations(), kBarriers + 1U) << "and the trial";
  EXPECT_GE(questions(), std::uint64_t{kBarriers / 2}) << "none if ranks came long before the root";
  EXPECT_EQ(sent_up(), (kBarriers + 1U) * (kHosts - 1)) << "one contribution of each rank";
}

// Ranks start more barriers than may be in flight, each in another order of arrival. They look at
// those that have started, and collect them in an order of their own.
TEST_F(NicAskingJob, SeveralInFlightKeepEachItsOrder) {
  constexpr int kRounds = 40, kBarriers = kRounds * kAtOnce;
  start_daemons();
  const SharedCounts come(kBarriers);
  auto processes = start_job([&come](const NicRank& self) {
    const Turns turns(come);
    base::Prng together(11), apart(static_cast<std::uint64_t>(self.rank) + 1);
    for (std::size_t first = 0; first < kBarriers; first += kAtOnce) {
      std::array<unisono_request_t, kAtOnce> requests = {};
      for (std::size_t i = 0; i < kAtOnce; ++i) {
        turns.await(first + i, turn_of(self, together));
        ++come[first + i];
        ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &requests[i])));
        for (std::size_t earlier = 0; earlier <= i; ++earlier) {
          ASSERT_NO_FATAL_FAILURE(look(requests[earlier], come[first + earlier], self.ranks));
        }
      }
      std::array<std::size_t, kAtOnce> order = {};
      for (std::size_t i = 0; i < kAtOnce; ++i) order[i] = i;
      for (std::size_t i = kAtOnce - 1; i > 0; --i) std::swap(order[i], order[apart.below(i + 1)]);
      for (const std::size_t i : order) {
        if (requests[i] == nullptr) continue;
        ASSERT_TRUE(succeeded(unisono_wait(&requests[i])));
        ASSERT_EQ(come[first + i], self.ranks) << "a rank left early";
      }
    }
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_EQ(operations(), kBarriers + 1U) << "and the trial";
  EXPECT_GE(questions(), std::uint64_t{kBarriers / 2});
  EXPECT_EQ(sent_up(), (kBarriers + 1U) * (kHosts - 1)) << "one contribution of each rank";
}

// The root starts a barrier, and no thread of it progresses that until all others have left. Rank 3
// comes when the root has asked, and needs no further question.
TEST_F(NicAskingJob, ARootThatComputesHoldsUpNobody) {
  constexpr int kLate = 3;
  start_daemons();
  const auto body = [](const NicRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    self.line.say("ready");
    self.line.hear();
    unisono_request_t request = nullptr;
    ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &request)));
    if (self.rank == 0) {
      self.line.say("has started");
      self.line.hear();
    }
    ASSERT_TRUE(succeeded(unisono_wait(&request)));
    self.line.say("has left");
    leave(self);
  };
  auto processes = start_job(body, {{"UNISONO_AGENT", "off"}});
  const auto line_of = [&](int rank) -> const Line& {
    return processes[static_cast<std::size_t>(rank)].line();
  };
  for (int rank = 0; rank < kHosts; ++rank) ASSERT_EQ(line_of(rank).hear(), "ready");
  const std::uint64_t before = questions();
  for (const int rank : {1, 2, 0}) line_of(rank).say("go");
  ASSERT_EQ(line_of(0).hear(), "has started");
  EXPECT_GT(questions(), before);
  line_of(kLate).say("go");
  for (int rank = 1; rank < kHosts; ++rank) EXPECT_EQ(line_of(rank).hear(), "has left");
  line_of(0).say("collect");
  EXPECT_EQ(line_of(0).hear(), "has left");
  EXPECT_EQ(questions() - before, 1U);
  expect_all_clean(processes);
}

TEST_F(NicAskingJob, RanksOfAHostComeTogether) {
  constexpr int kBarriers = 100;
  start_daemons();
  host_of_ = {0, 0, 1, 1, 2, 2};
  expect_order_kept(kBarriers);
  EXPECT_EQ(operations(), kBarriers + 1U);
  EXPECT_GE(questions(), std::uint64_t{kBarriers / 2});
}

TEST_F(NicAskingJob, WithoutMulticastRanksTellTheRoot) {
  constexpr int kBarriers = 100;
  start_daemons();
  expect_order_kept(kBarriers, {{"UNISONO_MULTICAST", "off"}});
  EXPECT_EQ(operations(), kBarriers + 1U);
  EXPECT_EQ(questions(), 0U);
}

TEST_F(NicAskingJob, WithoutTheNicPathItIsASchedule) {
  start_daemons();
  expect_order_kept(100, {{"UNISONO_NIC", "off"}});
  EXPECT_EQ(operations(), 0U);
}

// Rank 3 comes when the root has asked for it again and again. The root asks a bounded number of
// times for as long as it has waited, and every rank has sent one contribution.
TEST_F(NicAskingJob, QuestionsAreFewHoweverLateARankIs) {
  constexpr int kLate = 3;
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    self.line.say("ready");
    for (int i = 0; i < 3; ++i) {
      self.line.hear();
      const std::int64_t start_ns = base::now_ns();
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      self.line.say(std::to_string(base::now_ns() - start_ns));
    }
    leave(self);
  });
  for (const HostProcess& rank : processes) ASSERT_EQ(rank.line().hear(), "ready");
  // After 2, 8 and 13 questions the wait has lasted 1, 127 and 447 ms at least.
  for (const std::uint64_t wanted : {2U, 8U, 13U}) {
    SCOPED_TRACE(wanted);
    const std::uint64_t before = questions();
    const std::uint64_t sent_before = sent_up();
    for (const int rank : {0, 1, 2}) processes[static_cast<std::size_t>(rank)].line().say("go");
    const std::int64_t end_ns = base::now_ns() + kLongest;
    while (questions() - before < wanted && base::now_ns() < end_ns) std::this_thread::yield();
    EXPECT_GE(questions() - before, wanted) << "the root has stopped to ask";
    processes[kLate].line().say("go");
    std::int64_t waited_ns = 0;
    for (const HostProcess& rank : processes) {
      const std::string said = rank.line().hear();
      ASSERT_FALSE(said.empty());
      if (&rank == &processes.front()) waited_ns = std::stoll(said);
    }
    EXPECT_LE(questions() - before, most_questions(waited_ns)) << waited_ns << " ns";
    EXPECT_EQ(sent_up() - sent_before, std::uint64_t{kHosts - 1});
  }
  expect_all_clean(processes);
}

TEST_F(NicAskingJob, ALostRankIsNamed) {
  start_daemons();
  for (const int victim : {3, 0}) {
    SCOPED_TRACE(victim);
    auto processes = start_job([victim](const NicRank& self) {
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      lose(self, victim);
      EXPECT_TRUE(
          failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST,
                 {"rank " + std::to_string(victim), "it does not answer", "in the NIC path"}));
      unisono_finalize(self.world);
    });
    expect_all_clean_but(processes, victim);
  }
}

// Other calls do not ask, and calls that differ are found although ranks wait for a question.
TEST_F(NicAskingJob, CallsThatDifferAreFound) {
  start_daemons();
  for (const int different : {3, 0}) {
    expect_difference([different](const NicRank& self) {
      std::int64_t value = 1;
      return self.rank != different ? unisono_barrier(self.world)
                                    : unisono_allreduce(UNISONO_IN_PLACE, &value, 1, UNISONO_INT64,
                                                        UNISONO_SUM, self.world);
    });
  }
}

}  // namespace
}  // namespace unisono::harness::asking_job_test
