// SPDX-License-Identifier: BSD-3-Clause
// Ranks are killed at any moment. The others shrink the communicator and compute right results.
// Nothing is left behind. Also queries, which report a killed rank.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "harness/outcome.hpp"
#include "process/ranks.hpp"
#include "process/word.hpp"

namespace unisono::harness::survive_test {
namespace {

int size_of(unisono_comm_t comm) {
  int size = 0;
  EXPECT_TRUE(succeeded(unisono_comm_size(comm, &size)));
  return size;
}

// The sum of all members' ranks in the job.
int sum_ranks(const ProcessRank& self, unisono_comm_t comm, std::int64_t* sum) {
  const std::vector<std::int64_t> in(2'000, self.rank);
  std::vector<std::int64_t> out(in.size());
  const int error =
      unisono_allreduce(in.data(), out.data(), 2'000, UNISONO_INT64, UNISONO_SUM, comm);
  EXPECT_TRUE(error != UNISONO_OK || out.front() == out.back());
  *sum = out.back();
  return error;
}

// Computes until a rank is lost.
int repeat_until_lost(const ProcessRank& self, unisono_comm_t comm) {
  std::int64_t sum = 0;
  int error = UNISONO_OK;
  while (error == UNISONO_OK) error = sum_ranks(self, comm, &sum);
  return error;
}

TEST(Survive, TheOthersGoOnAndFinalizeWell) {
  const auto shm_before = unisono_files_in_shm();
  ProcessJob job(4, [](ProcessRank& self) {
    unisono_comm_t untouched = nullptr;  // without the victim
    ASSERT_TRUE(succeeded(unisono_comm_split(self.world, self.rank == 2 ? 1 : 0, 0, &untouched)));
    self.say("ready");
    EXPECT_TRUE(failed(repeat_until_lost(self, self.world), UNISONO_ERROR_RANK_LOST, {"rank 2"}));
    unisono_comm_t survivors = nullptr;
    ASSERT_TRUE(succeeded(unisono_shrink(self.world, &survivors)));
    EXPECT_EQ(size_of(survivors), 3);
    int rank = -1;
    EXPECT_TRUE(succeeded(unisono_comm_rank(survivors, &rank)));
    EXPECT_EQ(rank, self.rank - (self.rank > 2 ? 1 : 0)) << "in the old order";
    for (int i = 0; i < 100; ++i) {
      for (unisono_comm_t comm : {survivors, untouched}) {
        std::int64_t sum = 0;
        ASSERT_TRUE(succeeded(sum_ranks(self, comm, &sum)));
        ASSERT_EQ(sum, 0 + 1 + 3);
      }
    }
    unisono_comm_t again = nullptr;
    EXPECT_TRUE(failed(unisono_shrink(self.world, &again), UNISONO_ERROR_STATE, {"already"}));
    EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST, {"rank 2"}));
    EXPECT_TRUE(succeeded(unisono_comm_free(untouched)));
    EXPECT_TRUE(succeeded(unisono_comm_free(survivors)));
  });
  job.await_line_of_all();
  usleep(5'000);
  job.signal(2, SIGKILL);
  job.expect_all_clean(2);
  EXPECT_TRUE(nothing_left(job, shm_before));
}

// Over the world's communicators as exchanges. Null: this rank is none of the two.
unisono_comm_t job_of_two(const ProcessRank& self, int first, int second) {
  const bool is_member = self.rank == first || self.rank == second;
  unisono_comm_t both = nullptr, world = nullptr;
  EXPECT_TRUE(succeeded(
      unisono_comm_split(self.world, is_member ? 0 : -1, self.rank == first ? 0 : 1, &both)));
  if (!is_member) return nullptr;
  const unisono_exchange_t exchange{[](const void* own, void* all, std::size_t bytes, void* comm) {
                                      return unisono_allgather(
                                          own, all, static_cast<std::int64_t>(bytes), UNISONO_BYTE,
                                          static_cast<unisono_comm_t>(comm));
                                    },
                                    both, 0};
  unisono_init_options_t options{};
  options.size = sizeof options;
  EXPECT_TRUE(
      succeeded(unisono_init_with(self.rank == first ? 0 : 1, 2, &exchange, &options, &world)));
  EXPECT_TRUE(succeeded(unisono_comm_free(both)));
  return world;
}

// A rank waits for requests of two jobs, and a member of the second one dies.
TEST(Survive, ADeathInEitherJobEndsAWaitForBoth) {
  for (const int victim : {1, 2}) {
    SCOPED_TRACE(victim);
    ProcessJob job(3, [victim](ProcessRank& self) {
      unisono_comm_t jobs[2] = {job_of_two(self, 0, 1), job_of_two(self, 0, 2)};
      if (self.rank != 0) {
        const Word the_end;
        self.say("ready");
        the_end.await();  // the victim is killed there
        unisono_finalize(jobs[self.rank - 1]);
        return;
      }
      unisono_request_t requests[2] = {};
      for (int i : {0, 1}) {
        ASSERT_TRUE(succeeded(unisono_barrier_start(jobs[i], &requests[i])));
      }
      self.say("ready");
      int index = -1;
      EXPECT_TRUE(failed(unisono_wait_any(requests, 2, &index), UNISONO_ERROR_RANK_LOST, {}));
      EXPECT_EQ(index, victim - 1);
      EXPECT_TRUE(succeeded(unisono_cancel(&requests[2 - victim])));
      for (unisono_comm_t each : jobs) unisono_finalize(each);
      self.say("done");
    });
    job.await_line_of_all();
    job.signal(victim, SIGKILL);
    EXPECT_TRUE(job.await_line(0));
    job.signal(3 - victim, kWord);
    job.expect_all_clean(victim);
  }
}

// One after the other, also while the rest shrinks, until one is left.
TEST(Survive, OneAfterTheOther) {
  constexpr int kRanks = 6;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto shm_before = unisono_files_in_shm();
    ProcessJob job(kRanks, [](ProcessRank& self) {
      self.say("ready");
      unisono_comm_t comm = self.world;
      while (size_of(comm) > 1) {
        ASSERT_TRUE(failed(repeat_until_lost(self, comm), UNISONO_ERROR_RANK_LOST, {"rank"}));
        unisono_comm_t survivors = nullptr;
        ASSERT_TRUE(succeeded(unisono_shrink(comm, &survivors)));
        ASSERT_LT(size_of(survivors), size_of(comm));
        if (comm != self.world) {
          EXPECT_TRUE(succeeded(unisono_comm_free(comm)));
        }
        comm = survivors;
      }
      std::int64_t sum = 0;
      EXPECT_TRUE(succeeded(sum_ranks(self, comm, &sum)));
      EXPECT_EQ(sum, self.rank);
    });
    job.await_line_of_all();
    base::Prng prng(seed);
    const int last = static_cast<int>(prng.below(kRanks));
    for (int i = 1; i < kRanks; ++i) {
      usleep(static_cast<useconds_t>(prng.below(4) == 0 ? 0 : prng.below(20'000)));
      job.signal((last + i) % kRanks, SIGKILL);
    }
    EXPECT_TRUE(job.wait(last).clean()) << job.wait(last).text();
    for (int i = 1; i < kRanks; ++i) job.wait((last + i) % kRanks);
    EXPECT_TRUE(nothing_left(job, shm_before));
  }
}

// Every round has new communicators that fail; all that is left of them fits into little memory.
TEST(Survive, MemoryOfWhatFailedIsUsedAgain) {
  ProcessJob::Options options;
  options.environment = {{"UNISONO_SHARED_LIMIT", "64M"}};
  ProcessJob job(
      3,
      [](ProcessRank& self) {
        self.say("ready");
        EXPECT_TRUE(
            failed(repeat_until_lost(self, self.world), UNISONO_ERROR_RANK_LOST, {"rank 0"}));
        unisono_comm_t comm = nullptr;
        ASSERT_TRUE(succeeded(unisono_shrink(self.world, &comm)));
        for (int round = 0; round < 100; ++round) {
          std::int64_t value = 1;
          std::int64_t result = 0;
          const unisono_op_t op = self.rank == 1 ? UNISONO_SUM : UNISONO_MAX;
          EXPECT_TRUE(failed(unisono_allreduce(&value, &result, 1, UNISONO_INT64, op, comm),
                             UNISONO_ERROR_MISMATCH));
          unisono_comm_t next = nullptr;
          ASSERT_TRUE(succeeded(unisono_shrink(comm, &next))) << "round " << round;
          ASSERT_EQ(size_of(next), 2);
          ASSERT_TRUE(succeeded(unisono_comm_free(comm)));
          comm = next;
        }
      },
      options);
  job.await_line_of_all();
  job.signal(0, SIGKILL);
  job.expect_all_clean(0);
}

// Rank 1 has not noticed anything; its next call returns the error that asks it to take part.
TEST(Survive, WhoCallsItFirstEndsTheCommunicatorForAll) {
  ProcessJob job(3, [](ProcessRank& self) {
    if (self.rank == 1) {
      int error = UNISONO_OK;
      while (error == UNISONO_OK) error = unisono_barrier(self.world);
      EXPECT_TRUE(failed_with_any(error, {UNISONO_ERROR_CANCELLED}, {"called shrink"}));
    }
    unisono_comm_t all = nullptr;
    ASSERT_TRUE(succeeded(unisono_shrink(self.world, &all)));
    std::int64_t sum = 0;
    EXPECT_TRUE(succeeded(sum_ranks(self, all, &sum)));
    EXPECT_EQ(sum, 0 + 1 + 2);
  });
  job.expect_all_clean();
}

TEST(Survive, ARankThatDoesNotCallItIsNamed) {
  ProcessJob::Options options;
  options.environment = {{"UNISONO_TIMEOUT", "200ms"}};
  ProcessJob job(
      3,
      [](ProcessRank& self) {
        unisono_comm_t some = nullptr;
        ASSERT_TRUE(succeeded(unisono_comm_split(self.world, self.rank == 2 ? 1 : 0, 0, &some)));
        if (self.rank != 2) {
          unisono_comm_t all = nullptr;
          EXPECT_TRUE(failed(unisono_shrink(self.world, &all), UNISONO_ERROR_TIMEOUT,
                             {self.rank == 0 ? "rank 2" : "rank 0"}));
          ASSERT_TRUE(succeeded(unisono_barrier(some)));
        }
        if (self.rank == 2) {
          // Ends when both have given it up: nothing is left to wait for.
          self.say("here");
          pause();
        }
        self.say("done");
      },
      options);
  ASSERT_TRUE(job.await_line(2));
  ASSERT_TRUE(job.await_line(0));
  ASSERT_TRUE(job.await_line(1));
  job.signal(2, SIGKILL);
  job.expect_all_clean(2);
}

// A heartbeat: rank 1 is killed, and the others' queries tell.
TEST(Query, TellsOfARankThatWasKilled) {
  const auto shm_before = unisono_files_in_shm();
  ProcessJob job(3, [](ProcessRank& self) {
    ASSERT_TRUE(succeeded(unisono_publish(self.world, 7)));
    int reached = 0;
    while (reached == 0) {
      ASSERT_TRUE(succeeded(unisono_query(self.world, UNISONO_GREATER_EQUAL, 7, &reached)));
    }
    self.say("ready");
    if (self.rank == 1) pause();
    int error = UNISONO_OK;
    while (error == UNISONO_OK) {
      error = unisono_query(self.world, UNISONO_EQUAL, 7, &reached);
      EXPECT_EQ(reached, error == UNISONO_OK ? 1 : 0);
    }
    self.say(fmt::format("{}", base::now_ns()));
    EXPECT_TRUE(failed(error, UNISONO_ERROR_RANK_LOST, {"query: rank 1 is lost"}));
  });
  job.await_line_of_all();
  const std::int64_t killed_ns = base::now_ns();
  job.signal(1, SIGKILL);
  job.expect_all_clean(1);
  const std::int64_t told_ns = std::stoll(job.wait(0).lines[1]);
  std::printf("             rank 0 knew after %.1f ms\n",
              static_cast<double>(told_ns - killed_ns) / 1e6);
  EXPECT_TRUE(nothing_left(job, shm_before));
}

int yes(void*) { return 1; }

// Rank 1 is stopped, so it gives no answer. Rank 0 asks until that is seen.
void query_a_stopped_rank(const char* limit, unisono_interrupt_t interrupt, int code,
                          const std::string& end) {
  ProcessJob::Options options;
  options.environment = {{"UNISONO_DETECT_TIMEOUT", "10s"}, {"UNISONO_TIMEOUT", limit}};
  ProcessJob job(
      2,
      [&](ProcessRank& self) {
        if (self.rank == 1) {
          self.say("ready");
          pause();
        }
        ASSERT_TRUE(succeeded(unisono_set_interrupt(self.world, interrupt, nullptr)));
        int all = 0;
        int error = UNISONO_OK;
        while (error == UNISONO_OK) error = unisono_query(self.world, UNISONO_EQUAL, 0, &all);
        EXPECT_TRUE(failed(error, code, {"rank 0: query " + end, "rank 1", "has not answered"}));
        int of_whom = 0;
        ASSERT_TRUE(succeeded(unisono_comm_failed_rank(self.world, &of_whom)));
        EXPECT_EQ(of_whom, -1) << "the communicator has not failed";
        self.say("done");
      },
      options);
  ASSERT_TRUE(job.await_line(1));
  job.signal(1, SIGSTOP);
  EXPECT_TRUE(job.await_line(0));
  job.signal(1, SIGKILL);
  job.expect_all_clean(1);
}

TEST(Query, EndsByTheTimeLimitOfOperations) {
  query_a_stopped_rank("200ms", nullptr, UNISONO_ERROR_TIMEOUT,
                       "was not complete after 200ms (UNISONO_TIMEOUT)");
}

TEST(Query, EndsByAnInterrupt) {
  query_a_stopped_rank("0", &yes, UNISONO_ERROR_CANCELLED, "was interrupted");
}

unisono_rank_state_t state_of(unisono_comm_t comm, int rank) {
  unisono_rank_state_t state{};
  state.size = sizeof state;
  EXPECT_TRUE(succeeded(unisono_comm_rank_state(comm, rank, &state)));
  return state;
}

// The others ask for each of the two; a query names only the first one.
TEST(RankState, TellsOfEachRankThatWasKilled) {
  ProcessJob job(4, [](ProcessRank& self) {
    unisono_comm_t backwards = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_split(self.world, 0, -self.rank, &backwards)));
    const int killed = self.rank == 1 || self.rank == 2 ? 1 : 0;
    unisono_comm_t alike = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_split(self.world, killed, self.rank, &alike)));
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(state_of(self.world, rank).state, UNISONO_RANK_PRESENT);
      EXPECT_STREQ(state_of(self.world, rank).why, "");
    }
    self.say("ready");
    if (killed == 1) pause();
    for (const int rank : {2, 1}) {
      while (state_of(self.world, rank).state == UNISONO_RANK_PRESENT) {
      }
      const unisono_rank_state_t state = state_of(self.world, rank);
      EXPECT_EQ(state.state, UNISONO_RANK_LOST);
      EXPECT_EQ(std::string(state.why).find(fmt::format("rank {} is lost (", rank)), 0U);
      EXPECT_EQ(state_of(backwards, 3 - rank).state, UNISONO_RANK_LOST);
    }
    const int other = 3 - self.rank;
    EXPECT_EQ(state_of(self.world, other).state, UNISONO_RANK_PRESENT);
    // Neither of the two leaves the job before the other has asked for it.
    EXPECT_TRUE(succeeded(unisono_barrier(alike)));
    EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST));
    EXPECT_EQ(state_of(self.world, 1).state, UNISONO_RANK_LOST) << "also after a failure";
  });
  job.await_line_of_all();
  job.signal(1, SIGKILL);
  job.signal(2, SIGKILL);
  for (const int rank : {0, 3}) EXPECT_TRUE(job.wait(rank).clean()) << job.wait(rank).text();
}

}  // namespace
}  // namespace unisono::harness::survive_test
