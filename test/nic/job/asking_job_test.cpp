// SPDX-License-Identifier: BSD-3-Clause
// Jobs whose barriers ask in the NIC path (barrier/test-and-set): no rank leaves early, in whatever
// order ranks come. Each rank sends one contribution. While a rank is late, the number of questions
// grows with the logarithm of the wait, and later by one for each longest delay. A rank that dies
// ends the barrier as any other barrier.
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/prng.hpp"
#include "engine/nic/nic_patience.hpp"
#include "model/default_machine.hpp"
#include "nic/job/nic_job.hpp"

namespace unisono::harness::asking_job_test {
namespace {

constexpr int kMostRanks = 8;
// Before that a root has asked as often as a test wants, unless it never will.
constexpr std::int64_t kLongest = 60 * base::kSecond;

// Memory of all processes that are forked later: how many ranks have come to each barrier, and
// whether one has given up.
class SharedCounts {
 public:
  explicit SharedCounts(std::size_t count)
      : bytes_((count + 1) * sizeof(std::atomic<int>)),
        memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        counts_(static_cast<std::atomic<int>*>(memory_)) {
    UNISONO_CHECK(memory_ != MAP_FAILED, "no memory for the counts of a test");
  }
  SharedCounts(const SharedCounts&) = delete;
  SharedCounts& operator=(const SharedCounts&) = delete;
  ~SharedCounts() { munmap(memory_, bytes_); }
  std::atomic<int>& has_failed() const { return counts_[0]; }
  std::atomic<int>& operator[](std::size_t i) const { return counts_[i + 1]; }

 private:
  std::size_t bytes_;
  void* memory_;
  std::atomic<int>* counts_;
};

// Other ranks would wait for the turn of one that has given up.
class Turns {
 public:
  explicit Turns(const SharedCounts& come) : come_(come) {}
  ~Turns() {
    if (testing::Test::HasFailure()) come_.has_failed() = 1;
  }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;
  void await(std::size_t barrier, int own) const {
    while (come_[barrier] < own && come_.has_failed() == 0) std::this_thread::yield();
  }

 private:
  const SharedCounts& come_;
};

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
            std::array<int, kMostRanks> turn = {};
            for (int rank = 0; rank < self.ranks; ++rank) {
              turn[static_cast<std::size_t>(rank)] = rank;
            }
            for (int last = self.ranks - 1; last > 0; --last) {
              std::swap(turn[static_cast<std::size_t>(last)],
                        turn[together.below(static_cast<std::uint64_t>(last) + 1)]);
            }
            const int own = turn[static_cast<std::size_t>(self.rank)];
            turns.await(i, own);
            ++come[i];
            ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
            ASSERT_EQ(come[i], self.ranks) << "a rank left early";
          }
          leave(self);
        },
        environment);
    expect_all_clean(processes);
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
      if (self.rank == victim) raise(SIGKILL);
      EXPECT_TRUE(
          failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST,
                 {"rank " + std::to_string(victim), "it does not answer", "in the NIC path"}));
      unisono_finalize(self.world);
    });
    expect_all_clean(processes, victim);
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
