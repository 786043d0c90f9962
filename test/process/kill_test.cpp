// SPDX-License-Identifier: BSD-3-Clause
// kill -9, and SIGSTOP for good, of a rank during every blocking call, once while all ranks are
// busy and once while the others sleep in it. Each survivor's call returns RANK_LOST and names the
// rank. The time that takes is printed, and not checked. Then a rank that never arrives, and ranks
// that die while the others finalize. Nothing is left on the machine.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "harness/outcome.hpp"
#include "harness/scale.hpp"
#include "process/ranks.hpp"

namespace unisono::harness::kill_test {
namespace {

void sleep_ms(std::int64_t time_ms) { usleep(static_cast<useconds_t>(time_ms * 1000)); }

// Data for the repeated call of one rank.
struct Desk {
  unisono_comm_t comm = nullptr;
  int ranks = 0;
  std::vector<double> in = std::vector<double>(4096, 1.0);
  std::vector<double> out = std::vector<double>(4096 * 8);
  unisono_plan_t plan = nullptr;
};

struct BlockingCall {
  const char* name;
  std::function<int(Desk&)> once;
  std::map<std::string, std::string> environment = {};
  // The call takes a lock for a moment, in which the process must not be stopped (decision 35).
  bool locks = false;
};

void PrintTo(const BlockingCall& call, std::ostream* out) { *out << call.name; }

int start_sum(Desk& d, std::int64_t count, unisono_request_t* request) {
  return unisono_allreduce_start(d.in.data(), d.out.data(), count, UNISONO_FLOAT64, UNISONO_SUM,
                                 d.comm, request);
}

int wait_for_one(Desk& d) {
  unisono_request_t request = nullptr;
  const int error = start_sum(d, 8, &request);
  return error == UNISONO_OK ? unisono_wait(&request) : error;
}

int wait_for_any(Desk& d) {
  unisono_request_t requests[2] = {};
  int index = -1;
  int error = unisono_barrier_start(d.comm, &requests[0]);
  if (error == UNISONO_OK) error = start_sum(d, 8, &requests[1]);
  for (int i = 0; i < 2 && error == UNISONO_OK; ++i) error = unisono_wait_any(requests, 2, &index);
  return error;
}

int wait_for_all(Desk& d) {
  unisono_request_t requests[2] = {};
  int error = unisono_barrier_start(d.comm, &requests[0]);
  if (error == UNISONO_OK) error = start_sum(d, 100, &requests[1]);
  return error == UNISONO_OK ? unisono_wait_all(requests, 2) : error;
}

int wait_for_plan(Desk& d) {
  int error = UNISONO_OK;
  if (d.plan == nullptr) error = unisono_barrier_plan(d.comm, &d.plan);
  if (error == UNISONO_OK) error = unisono_plan_start(d.plan);
  return error == UNISONO_OK ? unisono_plan_wait(d.plan) : error;
}

int poll_until_done(Desk& d) {
  unisono_request_t request = nullptr;
  int error = start_sum(d, 8, &request);
  for (int done = 0; done == 0 && error == UNISONO_OK;) error = unisono_test(&request, &done);
  return error;
}

int split_and_free(Desk& d) {
  unisono_comm_t part = nullptr;
  const int error = unisono_comm_split(d.comm, 0, 0, &part);
  return error == UNISONO_OK ? unisono_comm_free(part) : error;
}

int duplicate_and_free(Desk& d) {
  unisono_comm_t copy = nullptr;
  const int error = unisono_comm_dup(d.comm, &copy);
  return error == UNISONO_OK ? unisono_comm_free(copy) : error;
}

// All ranks, backwards.
int list_and_free(Desk& d) {
  std::vector<int> members;
  for (int rank = d.ranks; rank-- > 0;) members.push_back(rank);
  unisono_comm_t part = nullptr;
  const int error = unisono_comm_from_list(d.comm, members.data(), d.ranks, &part);
  return error == UNISONO_OK ? unisono_comm_free(part) : error;
}

std::vector<BlockingCall> blocking_calls() {
  const auto allreduce = [](std::int64_t count) {
    return [=](Desk& d) {
      return unisono_allreduce(d.in.data(), d.out.data(), count, UNISONO_FLOAT64, UNISONO_SUM,
                               d.comm);
    };
  };
  return {
      {"Barrier", [](Desk& d) { return unisono_barrier(d.comm); }},
      {"Broadcast",
       [](Desk& d) { return unisono_broadcast(d.out.data(), 16, UNISONO_FLOAT64, 0, d.comm); }},
      {"Reduce",
       [](Desk& d) {
         return unisono_reduce(d.in.data(), d.out.data(), 16, UNISONO_FLOAT64, UNISONO_SUM, 0,
                               d.comm);
       }},
      {"Allreduce", allreduce(1)},
      {"AllreduceLarge", allreduce(4096)},
      {"Allgather",
       [](Desk& d) {
         return unisono_allgather(d.in.data(), d.out.data(), 64, UNISONO_FLOAT64, d.comm);
       }},
      {"AllgatherInOneCopy",
       [](Desk& d) {
         return unisono_allgather(d.in.data(), d.out.data(), 4096, UNISONO_FLOAT64, d.comm);
       },
       {{"UNISONO_SINGLE_COPY", "on"}, {"UNISONO_SINGLE_COPY_FROM", "64"}}},
      {"Wait", wait_for_one},
      {"WaitAny", wait_for_any},
      {"WaitAll", wait_for_all},
      {"PlanWait", wait_for_plan},
      {"Polling", poll_until_done, {{"UNISONO_AGENT", "off"}}},
      {"CommSplit", split_and_free, {}, true},
      {"CommDup", duplicate_and_free, {}, true},
      {"CommFromList", list_and_free, {}, true},
  };
}

std::int64_t number_in(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// A survivor: calls until it fails, and says when that was.
void repeat_until_lost(const ProcessRank& self, Desk& desk, const BlockingCall& call, int victim) {
  int error = UNISONO_OK;
  while (error == UNISONO_OK) error = call.once(desk);
  self.say(fmt::format("{}", base::now_ns()));
  EXPECT_TRUE(failed(error, UNISONO_ERROR_RANK_LOST, {fmt::format("rank {}", victim)}));
  EXPECT_TRUE(
      failed(unisono_barrier(desk.comm), UNISONO_ERROR_RANK_LOST, {fmt::format("rank {}", victim)}))
      << "later calls return the same error";
}

enum class Moment { busy, asleep };

const char* how(int signal) { return signal == SIGKILL ? "killed" : "stopped"; }

// The victim gets the signal some time after all ranks have said that they are at it.
void lose_during(const BlockingCall& call, int signal, int ranks, int victim, Moment moment,
                 std::int64_t delay_ms) {
  const auto shm_before = unisono_files_in_shm();
  ProcessJob::Options options;
  options.environment = call.environment;
  if (signal == SIGSTOP) options.environment["UNISONO_DETECT_TIMEOUT"] = "200ms";
  ProcessJob job(
      ranks,
      [&](ProcessRank& self) {
        Desk desk;
        desk.comm = self.world;
        desk.ranks = self.ranks;
        for (int i = 0; i < 10; ++i) ASSERT_TRUE(succeeded(call.once(desk)));
        self.say("ready");
        if (self.rank == victim && moment == Moment::asleep) pause();
        repeat_until_lost(self, desk, call, victim);
      },
      options);
  job.await_line_of_all();
  sleep_ms(delay_ms);
  const std::int64_t lost_ns = base::now_ns();
  job.signal(victim, signal);
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank != victim) job.wait(rank);
  }
  job.signal(victim, SIGKILL);
  job.expect_all_clean(victim);
  EXPECT_EQ(job.wait(victim).status, SIGKILL);
  std::int64_t slowest_ns = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& lines = job.wait(rank).lines;
    if (rank == victim || lines.size() < 2) continue;
    slowest_ns = std::max(slowest_ns, number_in(lines[1]) - lost_ns);
  }
  std::printf("             rank %d of %d %s %s: the last survivor knew after %.1f ms\n", victim,
              ranks, how(signal), moment == Moment::busy ? "busy" : "while the others slept",
              static_cast<double>(slowest_ns) / 1e6);
  EXPECT_TRUE(nothing_left(job, shm_before));
}

class Kill : public testing::TestWithParam<BlockingCall> {
 protected:
  // Different for each call, and the same in every run.
  base::Prng prng_{GetParam().name[0] * 31U + GetParam().name[1] * 7U};

  int random_below(int bound) {
    return static_cast<int>(prng_.below(static_cast<std::uint64_t>(bound)));
  }
};

TEST_P(Kill, WhileAllAreBusy) {
  for (const int ranks : {2, 4}) {
    lose_during(GetParam(), SIGKILL, ranks, random_below(ranks), Moment::busy,
                1 + random_below(30));
  }
  lose_during(GetParam(), SIGKILL, 3, 0, Moment::busy, 1 + random_below(30));
}

TEST_P(Kill, WhileTheOthersSleep) {
  for (const int ranks : {2, 5}) {
    lose_during(GetParam(), SIGKILL, ranks, random_below(ranks), Moment::asleep,
                20 + random_below(20));
  }
}

TEST_P(Kill, StoppedForGood) {
  const int victim = random_below(4);
  lose_during(GetParam(), SIGSTOP, 4, victim, Moment::asleep, 20);
  if (!GetParam().locks) lose_during(GetParam(), SIGSTOP, 4, victim, Moment::busy, 20);
}

INSTANTIATE_TEST_SUITE_P(Calls, Kill, testing::ValuesIn(blocking_calls()),
                         [](const auto& suite) { return std::string(suite.param.name); });

TEST(KillMany, AllAtOnceLeavesNothing) {
  const auto shm_before = unisono_files_in_shm();
  ProcessJob job(4, [](ProcessRank& self) {
    self.say("ready");
    while (unisono_barrier(self.world) == UNISONO_OK) {
    }
  });
  job.await_line_of_all();
  sleep_ms(10);
  for (int rank = 0; rank < 4; ++rank) job.signal(rank, SIGKILL);
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(job.wait(rank).status, SIGKILL);
  EXPECT_TRUE(nothing_left(job, shm_before));
}

TEST(KillMany, AllButOne) {
  const auto shm_before = unisono_files_in_shm();
  ProcessJob job(4, [](ProcessRank& self) {
    self.say("ready");
    int error = UNISONO_OK;
    while (error == UNISONO_OK) error = unisono_barrier(self.world);
    EXPECT_TRUE(failed(error, UNISONO_ERROR_RANK_LOST, {"rank"}));
  });
  job.await_line_of_all();
  for (const int rank : {0, 1, 3}) job.signal(rank, SIGKILL);
  EXPECT_TRUE(job.wait(2).clean()) << job.wait(2).text();
  for (const int rank : {0, 1, 3}) EXPECT_EQ(job.wait(rank).status, SIGKILL);
  EXPECT_TRUE(nothing_left(job, shm_before));
}

// A part of the job that the dead rank was no member of works on.
TEST(KillMany, ACommunicatorWithoutTheDeadRankGoesOn) {
  ProcessJob job(3, [](ProcessRank& self) {
    unisono_comm_t survivors = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_split(self.world, self.rank == 1 ? 1 : 0, 0, &survivors)));
    self.say("ready");
    if (self.rank == 1) pause();
    EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST, {"rank 1"}));
    for (int i = 0; i < 1000; ++i) {
      std::int64_t one = 1;
      std::int64_t sum = 0;
      ASSERT_TRUE(
          succeeded(unisono_allreduce(&one, &sum, 1, UNISONO_INT64, UNISONO_SUM, survivors)));
      ASSERT_EQ(sum, 2);
    }
  });
  job.await_line_of_all();
  job.signal(1, SIGKILL);
  job.expect_all_clean(1);
}

// Finalize waits for no rank: the others end well, wherever in it the victim was hit.
TEST(KillAtEnd, InTheMiddleOfFinalize) {
  const auto shm_before = unisono_files_in_shm();
  for (int round = 0; round < 20; ++round) {
    ProcessJob::Options options;
    options.joins = false;
    const int victim = round % 4;
    ProcessJob job(
        4,
        [](ProcessRank& self) {
          unisono_comm_t world = nullptr;
          unisono_comm_t part = nullptr;
          ASSERT_TRUE(succeeded(unisono_init(&world)));
          ASSERT_TRUE(succeeded(unisono_comm_split(world, self.rank % 2, 0, &part)));
          ASSERT_TRUE(succeeded(unisono_barrier(part)));
          self.say("ready");
          EXPECT_TRUE(succeeded(unisono_finalize(world)));
        },
        options);
    ASSERT_TRUE(job.await_line(victim)) << job.wait(victim).text();
    job.signal(victim, SIGKILL);
    job.expect_all_clean(victim);
    EXPECT_TRUE(nothing_left(job, shm_before));
  }
}

// Finalize returns a loss that another rank ran into and this one has not been informed of.
TEST(KillAtEnd, FinalizeTellsOfALoss) {
  ProcessJob::Options options;
  options.joins = false;
  ProcessJob job(
      3,
      [](ProcessRank& self) {
        unisono_comm_t world = nullptr;
        unisono_comm_t survivors = nullptr;
        ASSERT_TRUE(succeeded(unisono_init(&world)));
        ASSERT_TRUE(succeeded(unisono_comm_split(world, self.rank == 1 ? 1 : 0, 0, &survivors)));
        unisono_request_t request = nullptr;
        if (self.rank != 1) {
          ASSERT_TRUE(succeeded(unisono_barrier_start(world, &request)));
        }
        self.say("ready");
        if (self.rank == 1) pause();
        if (self.rank == 0) {
          EXPECT_TRUE(failed(unisono_wait(&request), UNISONO_ERROR_RANK_LOST, {"rank 1"}));
        }
        EXPECT_TRUE(succeeded(unisono_barrier(survivors)));
        const int error = unisono_finalize(world);
        EXPECT_TRUE(self.rank == 0 ? succeeded(error)
                                   : failed(error, UNISONO_ERROR_RANK_LOST, {"rank 1"}));
      },
      options);
  job.await_line_of_all();
  job.signal(1, SIGKILL);
  job.expect_all_clean(1);
}

// Before the job has begun: the others' init ends by its deadline and names the missing ranks.
TEST(KillAtStart, ARankThatNeverComes) {
  for (const int missing : {0, 2}) {
    const auto shm_before = unisono_files_in_shm();
    ProcessJob::Options options;
    options.joins = false;
    options.environment["UNISONO_START_TIMEOUT"] = "1s";
    ProcessJob job(
        3,
        [&](ProcessRank& self) {
          if (self.rank == missing) raise(SIGKILL);
          unisono_comm_t world = nullptr;
          EXPECT_TRUE(failed_with_any(unisono_init(&world),
                                      {UNISONO_ERROR_TIMEOUT, UNISONO_ERROR_RANK_LOST},
                                      {"unisono_init"}));
          const std::string text = unisono_last_error();
          if (missing == 2) {
            EXPECT_NE(text.find('2'), std::string::npos) << text;
          }
          EXPECT_EQ(world, nullptr);
        },
        options);
    job.expect_all_clean(missing);
    EXPECT_TRUE(nothing_left(job, shm_before));
  }
}

}  // namespace
}  // namespace unisono::harness::kill_test
