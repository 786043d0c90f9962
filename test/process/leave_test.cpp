// SPDX-License-Identifier: BSD-3-Clause
// Ranks that leave by themselves: exit without finalize, finalize early, a closed world used again.
// Calls that a process may make only once. Children that a rank forks.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "harness/outcome.hpp"
#include "harness/scale.hpp"
#include "process/ranks.hpp"
#include "process/word.hpp"

namespace unisono::harness::leave_test {
namespace {

int barriers_until_an_error(unisono_comm_t comm) {
  int error = UNISONO_OK;
  while (error == UNISONO_OK) error = unisono_barrier(comm);
  return error;
}

TEST(Leave, ExitWithoutFinalize) {
  for (const int leaver : {0, 2}) {
    const auto shm_before = unisono_files_in_shm();
    ProcessJob job(3, [&](ProcessRank& self) {
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      if (self.rank == leaver) _exit(0);
      EXPECT_TRUE(failed(barriers_until_an_error(self.world), UNISONO_ERROR_RANK_LOST,
                         {"rank " + std::to_string(leaver)}));
    });
    job.expect_all_clean();
    EXPECT_TRUE(nothing_left(job, shm_before));
  }
}

TEST(Leave, FinalizeEarlyIsALossForThoseWhoWait) {
  for (const int leaver : {0, 2}) {
    ProcessJob::Options options;
    options.joins = false;
    const auto shm_before = unisono_files_in_shm();
    ProcessJob job(
        3,
        [&](ProcessRank& self) {
          unisono_comm_t world = nullptr;
          ASSERT_TRUE(succeeded(unisono_init(&world)));
          ASSERT_TRUE(succeeded(unisono_barrier(world)));
          if (self.rank == leaver) {
            EXPECT_TRUE(succeeded(unisono_finalize(world)));
            self.say("left");
            sleep(1);  // it lives on: the others learn of its leaving, not of its death
            return;
          }
          EXPECT_TRUE(failed(barriers_until_an_error(world), UNISONO_ERROR_RANK_LOST,
                             {"rank " + std::to_string(leaver)}));
          unisono_finalize(world);
        },
        options);
    job.expect_all_clean();
    EXPECT_TRUE(nothing_left(job, shm_before));
  }
}

// No rank waits for those that finalize in order, however late the others are. Each ends its
// finalize before the next one begins its own.
TEST(Leave, InTurnIsNoError) {
  ProcessJob::Options options;
  options.joins = false;
  ProcessJob job(
      4,
      [](ProcessRank& self) {
        unisono_comm_t world = nullptr;
        ASSERT_TRUE(succeeded(unisono_init(&world)));
        ASSERT_TRUE(succeeded(unisono_barrier(world)));
        const Word turn;
        self.say("at the end");
        turn.await();
        EXPECT_TRUE(succeeded(unisono_finalize(world)));
        self.say("left");
      },
      options);
  job.await_line_of_all();
  for (const int rank : {2, 0, 3, 1}) {
    job.signal(rank, kWord);
    ASSERT_TRUE(job.await_line(rank)) << "rank " << rank << " has not left while others stay";
  }
  job.expect_all_clean();
}

TEST(Leave, InitAndFinalizeOncePerProcess) {
  ProcessJob::Options options;
  options.joins = false;
  ProcessJob job(
      2,
      [](ProcessRank&) {
        unisono_comm_t world = nullptr;
        unisono_comm_t again = nullptr;
        EXPECT_TRUE(failed(unisono_init(nullptr), UNISONO_ERROR_ARGUMENT, {"unisono_init"}));
        EXPECT_TRUE(failed_with_any(unisono_barrier(world),
                                    {UNISONO_ERROR_STATE, UNISONO_ERROR_ARGUMENT},
                                    {"unisono_init"}))
            << "before init";
        ASSERT_TRUE(succeeded(unisono_init(&world)));
        EXPECT_TRUE(failed(unisono_init(&again), UNISONO_ERROR_STATE, {"unisono_init"}));
        ASSERT_TRUE(succeeded(unisono_barrier(world)));
        ASSERT_TRUE(succeeded(unisono_finalize(world)));
        EXPECT_TRUE(failed(unisono_barrier(world), UNISONO_ERROR_STATE, {"unisono_barrier"}));
        EXPECT_TRUE(failed(unisono_finalize(world), UNISONO_ERROR_STATE, {"unisono_finalize"}));
        EXPECT_TRUE(failed(unisono_init(&world), UNISONO_ERROR_STATE, {"unisono_init"}));
      },
      options);
  job.expect_all_clean();
}

// The child of a rank, forked between collectives and while one is under way. Returns its status.
int run_child(unisono_comm_t world, unisono_request_t request) {
  const pid_t child = fork();
  if (child == 0) {
    std::int32_t value = 1;
    unisono_comm_t again = nullptr;
    const bool is_refused =
        failed(unisono_barrier(world), UNISONO_ERROR_STATE, {"unisono_barrier", "forked"}) &&
        failed(unisono_allreduce(UNISONO_IN_PLACE, &value, 1, UNISONO_INT32, UNISONO_SUM, world),
               UNISONO_ERROR_STATE, {"unisono_allreduce", "forked"}) &&
        failed(unisono_wait(&request), UNISONO_ERROR_STATE, {"unisono_wait"}) &&
        failed(unisono_comm_dup(world, &again), UNISONO_ERROR_STATE, {"forked"}) &&
        failed(unisono_init(&again), UNISONO_ERROR_STATE, {"unisono_init", "forked"}) &&
        failed(unisono_finalize(world), UNISONO_ERROR_STATE, {"unisono_finalize", "forked"});
    const int status = is_refused ? 0 : 1;
    // A sanitizer's handler would look for leaks, without the stacks of the parent's threads.
    if (kSanitized) _exit(status);
    exit(status);  // with all handlers of the process's end
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(Fork, AChildHasNoPartInTheJobAndDisturbsNoRank) {
  const auto shm_before = unisono_files_in_shm();
  ProcessJob job(3, [](ProcessRank& self) {
    for (int round = 0; round < 3; ++round) {
      std::int32_t sum = 1;
      unisono_request_t request = nullptr;
      ASSERT_TRUE(succeeded(unisono_allreduce_start(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT32,
                                                    UNISONO_SUM, self.world, &request)));
      const int child_status = self.rank == round ? run_child(self.world, request) : 0;
      EXPECT_EQ(child_status, 0);
      ASSERT_TRUE(succeeded(unisono_wait(&request)));
      EXPECT_EQ(sum, 3);
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    }
  });
  job.expect_all_clean();
  EXPECT_TRUE(nothing_left(job, shm_before));
}

// It lives until the other ranks have ended.
TEST(Fork, AChildThatLivesOnDoesNotHideTheDeathOfItsParent) {
  int others_end[2];
  ASSERT_EQ(pipe(others_end), 0);
  ProcessJob job(3, [&](ProcessRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    if (self.rank == 1) {
      if (fork() == 0) {
        close(others_end[1]);
        char byte = 0;
        while (read(others_end[0], &byte, 1) > 0) {
        }
      }
      _exit(0);
    }
    EXPECT_TRUE(failed(barriers_until_an_error(self.world), UNISONO_ERROR_RANK_LOST, {"rank 1"}));
  });
  close(others_end[0]);
  close(others_end[1]);
  job.expect_all_clean();
}

void do_nothing(void*, const void*, const void*, std::int64_t, unisono_type_t, void*) {}

// In a process of its own, because types and operators live until its end. Equal ones share a
// number.
TEST(Limits, AThousandTypesAndOperators) {
  ProcessJob job(1, [](ProcessRank&) {
    unisono_type_t type = -1;
    unisono_op_t op = -1;
    static char user[1001];
    for (std::size_t i = 0; i < 1000; ++i) {
      ASSERT_TRUE(succeeded(unisono_type_create(i + 1, 1, &type)));
      ASSERT_EQ(unisono_type_size(type), i + 1);
      ASSERT_TRUE(succeeded(unisono_op_create(do_nothing, 1, &user[i], &op)));
    }
    unisono_type_t one_more = -1;
    EXPECT_TRUE(failed(unisono_type_create(2000, 1, &one_more), UNISONO_ERROR_RESOURCES,
                       {"unisono_type_create", "1000"}));
    EXPECT_TRUE(failed(unisono_op_create(do_nothing, 1, &user[1000], &op), UNISONO_ERROR_RESOURCES,
                       {"unisono_op_create", "1000"}));
    EXPECT_TRUE(succeeded(unisono_type_create(1000, 1, &one_more)));
    EXPECT_EQ(one_more, type);
  });
  job.expect_all_clean();
}

TEST(Environment, WithoutALauncherIsAJobOfOneRank) {
  ProcessJob::Options options;
  options.joins = false;
  ProcessJob job(
      1,
      [](ProcessRank&) {
        for (const char* name : {"UNISONO_RANK", "UNISONO_SIZE", "UNISONO_RENDEZVOUS"}) {
          unsetenv(name);
        }
        unisono_comm_t world = nullptr;
        ASSERT_TRUE(succeeded(unisono_init(&world)));
        int size = 0;
        EXPECT_TRUE(succeeded(unisono_comm_size(world, &size)));
        EXPECT_EQ(size, 1);
        std::int32_t value = 5;
        EXPECT_TRUE(succeeded(
            unisono_allreduce(UNISONO_IN_PLACE, &value, 1, UNISONO_INT32, UNISONO_SUM, world)));
        EXPECT_EQ(value, 5);
        EXPECT_TRUE(succeeded(unisono_finalize(world)));
      },
      options);
  job.expect_all_clean();
}

TEST(Environment, NonsenseIsAnErrorThatNamesTheVariable) {
  const std::pair<const char*, const char*> nonsense[] = {{"UNISONO_RANK", "minus one"},
                                                          {"UNISONO_RANK", "7"},
                                                          {"UNISONO_SIZE", "0"},
                                                          {"UNISONO_RENDEZVOUS", "somewhere"},
                                                          {"UNISONO_ENGINE", "steam"}};
  for (const auto& [name, value] : nonsense) {
    SCOPED_TRACE(std::string(name) + "=" + value);
    ProcessJob::Options options;
    options.joins = false;
    options.environment[name] = value;
    ProcessJob job(
        1,
        [&](ProcessRank&) {
          unisono_comm_t world = nullptr;
          EXPECT_TRUE(
              failed(unisono_init(&world), UNISONO_ERROR_ARGUMENT, {"unisono_init", name, value}));
        },
        options);
    job.expect_all_clean();
  }
}

TEST(Environment, NonsenseIsAnErrorForThreadsToo) {
  ProcessJob::Options options;
  options.joins = false;
  options.environment["UNISONO_ENGINE"] = "steam";
  ProcessJob job(
      1,
      [](ProcessRank&) {
        unisono_threads_t threads = nullptr;
        EXPECT_TRUE(failed(unisono_threads_create(2, &threads), UNISONO_ERROR_ARGUMENT,
                           {"unisono_threads_create", "UNISONO_ENGINE", "steam"}));
      },
      options);
  job.expect_all_clean();
}

}  // namespace
}  // namespace unisono::harness::leave_test
