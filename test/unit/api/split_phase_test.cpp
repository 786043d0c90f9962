// SPDX-License-Identifier: BSD-3-Clause
// Started operations: several at once, completed in any order by test, wait, wait_any and wait_all,
// mixed with blocking ones, cancelled, left behind, and over two communicators by two threads.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <mutex>
#include <numeric>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "base/prng.hpp"
#include "harness/elements.hpp"
#include "harness/elsewhere.hpp"
#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::split_phase_test {
namespace {

constexpr int kRanks = 4;
constexpr std::int64_t kCount = 100;

// Operation `tag` of a batch: an allreduce of recognisable values, in memory of its own.
class Sum {
 public:
  Sum(int rank, int ranks, std::int64_t tag, std::int64_t count = kCount)
      : ranks_(ranks), tag_(tag), input_(static_cast<std::size_t>(count)), output_(input_.size()) {
    for (std::size_t i = 0; i < input_.size(); ++i) input_[i] = value(rank, i);
  }

  int start(unisono_comm_t comm, unisono_request_t* request) {
    return unisono_allreduce_start(input_.data(), output_.data(), std::ssize(input_), UNISONO_INT64,
                                   UNISONO_SUM, comm, request);
  }
  int run(unisono_comm_t comm) {
    return unisono_allreduce(input_.data(), output_.data(), std::ssize(input_), UNISONO_INT64,
                             UNISONO_SUM, comm);
  }
  testing::AssertionResult right() const {
    for (std::size_t i = 0; i < output_.size(); ++i) {
      std::int64_t sum = 0;
      for (int rank = 0; rank < ranks_; ++rank) sum += value(rank, i);
      if (output_[i] == sum) continue;
      return testing::AssertionFailure() << "operation " << tag_ << ", element " << i << ": "
                                         << output_[i] << ", expected " << sum;
    }
    return testing::AssertionSuccess();
  }

 private:
  std::int64_t value(int rank, std::size_t i) const {
    return tag_ * 1000003 + static_cast<std::int64_t>(i) * 17 + rank * (tag_ + 1);
  }

  int ranks_;
  std::int64_t tag_;
  std::vector<std::int64_t> input_;
  std::vector<std::int64_t> output_;
};

// `many` started sums of one rank.
struct Batch {
  std::vector<Sum> sums;
  std::vector<unisono_request_t> requests;

  Batch(const ThreadRank& self, int many, std::int64_t count = kCount)
      : requests(static_cast<std::size_t>(many)) {
    for (int tag = 0; tag < many; ++tag) sums.emplace_back(self.rank, self.ranks, tag, count);
  }
  testing::AssertionResult start(unisono_comm_t comm) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (const auto started = succeeded(sums[i].start(comm, &requests[i])); !started) {
        return started;
      }
      if (requests[i] == nullptr) return testing::AssertionFailure() << "no request " << i;
    }
    return testing::AssertionSuccess();
  }
  testing::AssertionResult right() const {
    for (const Sum& sum : sums) {
      if (const auto result = sum.right(); !result) return result;
    }
    return testing::AssertionSuccess();
  }
};

TEST(SplitPhase, EveryCollectiveStartedAndWaitedFor) {
  run_threads(5, [](ThreadRank& self) {
    const std::int32_t mine = self.rank + 1;
    std::int32_t from_root = self.rank == 2 ? 77 : 0;
    std::int32_t at_root = 0;
    std::int32_t everywhere = 0;
    std::vector<std::int32_t> all(5);
    unisono_request_t requests[5] = {};
    ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &requests[0])));
    ASSERT_TRUE(succeeded(
        unisono_broadcast_start(&from_root, 1, UNISONO_INT32, 2, self.world, &requests[1])));
    ASSERT_TRUE(succeeded(unisono_reduce_start(&mine, &at_root, 1, UNISONO_INT32, UNISONO_PROD, 4,
                                               self.world, &requests[2])));
    ASSERT_TRUE(succeeded(unisono_allreduce_start(&mine, &everywhere, 1, UNISONO_INT32, UNISONO_SUM,
                                                  self.world, &requests[3])));
    ASSERT_TRUE(succeeded(
        unisono_allgather_start(&mine, all.data(), 1, UNISONO_INT32, self.world, &requests[4])));
    for (unisono_request_t& request : requests) {
      ASSERT_TRUE(succeeded(unisono_wait(&request)));
      EXPECT_EQ(request, nullptr);
    }
    EXPECT_EQ(from_root, 77);
    EXPECT_EQ(at_root, self.rank == 4 ? 120 : 0);
    EXPECT_EQ(everywhere, 15);
    EXPECT_EQ(all, (std::vector<std::int32_t>{1, 2, 3, 4, 5}));
  });
}

TEST(SplitPhase, CompletedInAnOrderOfEachRanksOwn) {
  run_threads(kRanks, [](ThreadRank& self) {
    base::Prng prng(static_cast<std::uint64_t>(self.rank) + 1);
    for (std::int64_t round = scaled(40); round > 0; --round) {
      Batch batch(self, 8);
      ASSERT_TRUE(batch.start(self.world));
      std::vector<std::size_t> order(batch.requests.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::shuffle(order.begin(), order.end(), prng);
      for (const std::size_t i : order) {
        ASSERT_TRUE(succeeded(unisono_wait(&batch.requests[i])));
        ASSERT_TRUE(batch.sums[i].right());
      }
    }
  });
}

// Far more than any number of slot indexes: a start returns at once all the same.
TEST(SplitPhase, HundredsAtOnceThenWaitAll) {
  run_threads(kRanks, [](ThreadRank& self) {
    Batch batch(self, 300, 10);
    ASSERT_TRUE(batch.start(self.world));
    ASSERT_TRUE(succeeded(
        unisono_wait_all(batch.requests.data(), static_cast<int>(batch.requests.size()))));
    for (const unisono_request_t request : batch.requests) EXPECT_EQ(request, nullptr);
    ASSERT_TRUE(batch.right());
  });
}

TEST(SplitPhase, LargeOnesAtOnce) {
  run_threads(kRanks, [](ThreadRank& self) {
    Batch batch(self, 5, scaled(200000));
    ASSERT_TRUE(batch.start(self.world));
    for (auto request = batch.requests.rbegin(); request != batch.requests.rend(); ++request) {
      ASSERT_TRUE(succeeded(unisono_wait(&*request)));
    }
    ASSERT_TRUE(batch.right());
  });
}

TEST(SplitPhase, TestUntilDone) {
  run_threads(kRanks, [](ThreadRank& self) {
    Batch batch(self, 6);
    ASSERT_TRUE(batch.start(self.world));
    std::size_t left = batch.requests.size();
    while (left > 0) {
      for (std::size_t i = 0; i < batch.requests.size(); ++i) {
        if (batch.requests[i] == nullptr) continue;
        int done = -1;
        ASSERT_TRUE(succeeded(unisono_test(&batch.requests[i], &done)));
        ASSERT_TRUE(done == 0 || done == 1);
        ASSERT_EQ(batch.requests[i] == nullptr, done == 1);
        if (done == 0) continue;
        ASSERT_TRUE(batch.sums[i].right());
        --left;
      }
      std::this_thread::yield();
    }
  });
}

TEST(SplitPhase, TestIsNotDoneBeforeTheLastRankHasCome) {
  std::barrier tested(kRanks);
  run_threads(kRanks, [&](ThreadRank& self) {
    unisono_request_t request = nullptr;
    if (self.rank != 0) {
      EXPECT_TRUE(succeeded(unisono_barrier_start(self.world, &request)));
      for (int i = 0; i < 100; ++i) {
        int done = -1;
        EXPECT_TRUE(succeeded(unisono_test(&request, &done)));
        EXPECT_EQ(done, 0);
      }
    }
    tested.arrive_and_wait();
    if (self.rank == 0) {
      EXPECT_TRUE(succeeded(unisono_barrier_start(self.world, &request)));
    }
    ASSERT_TRUE(succeeded(unisono_wait(&request)));
  });
}

TEST(SplitPhase, WaitAnyGivesEachOnceAndPassesOverNull) {
  run_threads(kRanks, [](ThreadRank& self) {
    Batch batch(self, 7);
    ASSERT_TRUE(batch.start(self.world));
    std::vector<unisono_request_t> requests = batch.requests;
    requests.insert(requests.begin() + 3, nullptr);
    const int count = static_cast<int>(requests.size());
    std::vector<int> seen;
    for (int i = 0; i < 7; ++i) {
      int index = -2;
      ASSERT_TRUE(succeeded(unisono_wait_any(requests.data(), count, &index)));
      ASSERT_GE(index, 0);
      ASSERT_LT(index, count);
      EXPECT_EQ(requests[static_cast<std::size_t>(index)], nullptr);
      seen.push_back(index);
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 4, 5, 6, 7}));
    int index = -2;
    ASSERT_TRUE(succeeded(unisono_wait_any(requests.data(), count, &index)));
    EXPECT_EQ(index, -1);
    index = -2;
    ASSERT_TRUE(succeeded(unisono_wait_any(requests.data(), 0, &index)));
    EXPECT_EQ(index, -1);
    ASSERT_TRUE(batch.right());
  });
}

TEST(SplitPhase, WaitAllPassesOverNull) {
  run_threads(2, [](ThreadRank& self) {
    unisono_request_t requests[3] = {};
    EXPECT_TRUE(succeeded(unisono_wait_all(requests, 3)));
    EXPECT_TRUE(succeeded(unisono_wait_all(requests, 0)));
    ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &requests[1])));
    EXPECT_TRUE(succeeded(unisono_wait_all(requests, 3)));
    EXPECT_EQ(requests[1], nullptr);
  });
}

// Blocking operations take their place in the order behind the started ones.
TEST(SplitPhase, BlockingOnesBetweenStartedOnes) {
  run_threads(kRanks, [](ThreadRank& self) {
    for (std::int64_t round = scaled(60); round > 0; --round) {
      Batch batch(self, 4);
      Sum between(self.rank, self.ranks, 99);
      ASSERT_TRUE(batch.start(self.world));
      ASSERT_TRUE(succeeded(between.run(self.world)));
      ASSERT_TRUE(between.right());
      ASSERT_TRUE(succeeded(unisono_wait(&batch.requests[3])));
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      ASSERT_TRUE(succeeded(unisono_wait_all(batch.requests.data(), 4)));
      ASSERT_TRUE(batch.right());
    }
  });
}

TEST(SplitPhase, WaitAnyOverSeveralCommunicators) {
  run_threads(kRanks, [](ThreadRank& self) {
    unisono_comm_t other = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &other)));
    Sum first(self.rank, self.ranks, 1);
    Sum second(self.rank, self.ranks, 2);
    unisono_request_t requests[2] = {};
    // Each half of the ranks starts them the other way round: the orders are independent.
    if (self.rank % 2 == 0) {
      ASSERT_TRUE(succeeded(first.start(self.world, &requests[0])));
      ASSERT_TRUE(succeeded(second.start(other, &requests[1])));
    } else {
      ASSERT_TRUE(succeeded(second.start(other, &requests[1])));
      ASSERT_TRUE(succeeded(first.start(self.world, &requests[0])));
    }
    int indices[2] = {-2, -2};
    ASSERT_TRUE(succeeded(unisono_wait_any(requests, 2, &indices[0])));
    ASSERT_TRUE(succeeded(unisono_wait_any(requests, 2, &indices[1])));
    EXPECT_EQ(indices[0] + indices[1], 1);
    EXPECT_TRUE(first.right());
    EXPECT_TRUE(second.right());
    EXPECT_TRUE(succeeded(unisono_comm_free(other)));
  });
}

// Blocked in one communicator, a rank does not hold up its other one, which another thread uses.
TEST(SplitPhase, TwoCommunicatorsFromTwoThreadsOfEachRank) {
  run_threads(kRanks, [](ThreadRank& self) {
    unisono_comm_t other = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &other)));
    const auto use = [&](unisono_comm_t comm, std::int64_t seed) {
      for (std::int64_t tag = scaled(500); tag > 0; --tag) {
        Sum sum(self.rank, self.ranks, tag * seed, tag % 50);
        ASSERT_TRUE(succeeded(sum.run(comm)));
        ASSERT_TRUE(sum.right());
      }
    };
    std::thread second([&] { use(other, 7); });
    use(self.world, 3);
    second.join();
    EXPECT_TRUE(succeeded(unisono_comm_free(other)));
  });
}

// ---- cancel ----

// Rank 0 stays away until rank 1 has cancelled, so the operation cannot be complete by then.
TEST(SplitPhase, CancelEndsAnOperationForAllAndNamesWhoDidIt) {
  std::barrier cancelled(3);
  run_threads(3, [&](ThreadRank& self) {
    Sum sum(self.rank, self.ranks, 1);
    unisono_request_t request = nullptr;
    if (self.rank == 0) cancelled.arrive_and_wait();
    int error = sum.start(self.world, &request);
    if (self.rank == 1) {
      EXPECT_TRUE(succeeded(error));
      EXPECT_TRUE(succeeded(unisono_cancel(&request)));
      EXPECT_EQ(request, nullptr);
    }
    if (self.rank != 0) cancelled.arrive_and_wait();
    if (self.rank != 1) {
      // It may still complete for a rank that has all it needs; the communicator fails all the
      // same.
      if (error == UNISONO_OK) error = unisono_wait(&request);
      EXPECT_TRUE(error == UNISONO_OK ? sum.right()
                                      : failed(error, UNISONO_ERROR_CANCELLED, {"rank 1"}));
      EXPECT_EQ(request, nullptr);
    }
    EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_CANCELLED, {"rank 1"}));
    self.finalize();
  });
}

TEST(SplitPhase, CancelOfACompleteOperationIsAWait) {
  run_threads(3, [](ThreadRank& self) {
    Sum first(self.rank, self.ranks, 1);
    Sum second(self.rank, self.ranks, 2);
    unisono_request_t request = nullptr;
    ASSERT_TRUE(succeeded(first.start(self.world, &request)));
    ASSERT_TRUE(succeeded(second.run(self.world)));  // behind the first, which is then complete
    ASSERT_TRUE(succeeded(unisono_cancel(&request)));
    EXPECT_EQ(request, nullptr);
    EXPECT_TRUE(first.right());
    EXPECT_TRUE(succeeded(unisono_barrier(self.world)));
  });
}

TEST(SplitPhase, CancelConcernsItsCommunicatorOnly) {
  std::barrier cancelled(2);
  run_threads(2, [&](ThreadRank& self) {
    unisono_comm_t other = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &other)));
    if (self.rank == 1) {
      unisono_request_t request = nullptr;
      EXPECT_TRUE(succeeded(unisono_barrier_start(other, &request)));
      EXPECT_TRUE(succeeded(unisono_cancel(&request)));
    }
    cancelled.arrive_and_wait();
    int error = unisono_barrier(other);
    if (error == UNISONO_OK) error = unisono_barrier(other);  // rank 0 may have had all it needed
    EXPECT_TRUE(failed(error, UNISONO_ERROR_CANCELLED, {"rank 1"}));
    Sum sum(self.rank, self.ranks, 1);
    EXPECT_TRUE(succeeded(sum.run(self.world)));
    EXPECT_TRUE(sum.right());
    EXPECT_TRUE(succeeded(unisono_comm_free(other)));
  });
}

// Rank 0 stays away until all others have cancelled the operation, which needs it.
TEST(SplitPhase, CancelByManyIsOkForEach) {
  for (int round = 0; round < 20; ++round) {
    std::barrier started(3);
    std::barrier cancelled(4);
    const int first = round % 2;
    run_threads(4, [&](ThreadRank& self) {
      if (self.rank != 0) {
        unisono_request_t requests[2] = {};
        ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &requests[0])));
        ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &requests[1])));
        started.arrive_and_wait();
        EXPECT_TRUE(succeeded(unisono_cancel(&requests[first])));
        EXPECT_TRUE(succeeded(unisono_cancel(&requests[1 - first])));
        for (const unisono_request_t request : requests) EXPECT_EQ(request, nullptr);
      }
      cancelled.arrive_and_wait();
      int error = unisono_barrier(self.world);
      // Rank 0 may find all it needs for the first two.
      for (int i = 0; i < 2 && error == UNISONO_OK; ++i) error = unisono_barrier(self.world);
      EXPECT_TRUE(failed(error, UNISONO_ERROR_CANCELLED, {"rank"}));
      EXPECT_TRUE(succeeded(self.finalize())) << "it has been told";
    });
  }
}

// The second cancellation comes after the first.
TEST(SplitPhase, CancelOfWhatAnotherRankCancelledIsOk) {
  std::barrier cancelled(3);
  run_threads(3, [&](ThreadRank& self) {
    if (self.rank == 0) {
      cancelled.arrive_and_wait();
      EXPECT_TRUE(failed(self.finalize(), UNISONO_ERROR_CANCELLED, {"rank 1"}));
      return;
    }
    unisono_request_t request = nullptr;
    ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &request)));
    if (self.rank == 2) cancelled.arrive_and_wait();
    EXPECT_TRUE(succeeded(unisono_cancel(&request)));
    EXPECT_EQ(request, nullptr);
    if (self.rank == 1) cancelled.arrive_and_wait();
    EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_CANCELLED, {"rank 1"}));
    EXPECT_TRUE(succeeded(self.finalize()));
  });
}

// Rank 1 gives up the second operation, then the first, before it has done its part of that.
TEST(SplitPhase, CancelOfAnEarlierOperationIsToldToo) {
  std::barrier cancelled(3);
  run_threads(3, [&](ThreadRank& self) {
    if (self.rank == 1) {
      unisono_request_t requests[2] = {};
      ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &requests[0])));
      ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &requests[1])));
      EXPECT_TRUE(succeeded(unisono_cancel(&requests[1])));
      EXPECT_TRUE(succeeded(unisono_cancel(&requests[0])));
    }
    cancelled.arrive_and_wait();
    int error = unisono_barrier(self.world);
    for (int i = 0; i < 2 && error == UNISONO_OK; ++i) error = unisono_barrier(self.world);
    EXPECT_TRUE(failed(error, UNISONO_ERROR_CANCELLED, {"rank 1 cancelled"}));
    EXPECT_TRUE(succeeded(self.finalize()));
  });
}

TEST(SplitPhase, CancelOfWhatFailedOtherwiseSaysSo) {
  std::barrier refused(2);
  run_threads(2, [&](ThreadRank& self) {
    unisono_request_t request = nullptr;
    if (self.rank == 1) {
      EXPECT_TRUE(failed(unisono_broadcast(nullptr, 4, UNISONO_INT32, 0, self.world),
                         UNISONO_ERROR_ARGUMENT));
      refused.arrive_and_wait();
    } else {
      ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &request)));
      refused.arrive_and_wait();
      EXPECT_TRUE(failed(unisono_cancel(&request), UNISONO_ERROR_PEER_ARGUMENT, {"rank 1"}));
      EXPECT_EQ(request, nullptr);
    }
    self.finalize();
  });
}

// Rank 1 learns of rank 0's bad call while it still waits for rank 2 in the call before it.
TEST(SplitPhase, ABadCallAfterAnothersIsToldOnce) {
  std::barrier refused(2);
  std::barrier late(2);
  run_threads(3, [&](ThreadRank& self) {
    const std::int32_t one = 1;
    std::int32_t sum = 0;
    if (self.rank == 2) late.arrive_and_wait();
    unisono_request_t request = nullptr;
    ASSERT_TRUE(succeeded(
        unisono_reduce_start(&one, &sum, 1, UNISONO_INT32, UNISONO_SUM, 1, self.world, &request)));
    if (self.rank == 1) {
      int done = -1;
      refused.arrive_and_wait();
      EXPECT_TRUE(succeeded(unisono_test(&request, &done)));
      EXPECT_EQ(done, 0);
    }
    EXPECT_TRUE(failed(unisono_broadcast(nullptr, 4, UNISONO_INT32, 0, self.world),
                       UNISONO_ERROR_ARGUMENT));
    if (self.rank == 0) refused.arrive_and_wait();
    if (self.rank == 1) late.arrive_and_wait();
    EXPECT_TRUE(succeeded(unisono_wait(&request)));
    EXPECT_EQ(sum, self.rank == 1 ? 3 : 0);
    EXPECT_TRUE(succeeded(self.finalize()));
  });
}

// Rank 0 has gone ahead to a bad call of its own when rank 1 makes one that comes before it.
TEST(SplitPhase, ABadCallBeforeAKnownFailureEndsWhatWaitsForIt) {
  std::barrier refused(2);
  std::barrier told(2);
  std::barrier late(2);
  run_threads(3, [&](ThreadRank& self) {
    const std::int32_t one = 1;
    std::int32_t sum = 0;
    if (self.rank == 2) late.arrive_and_wait();
    unisono_request_t request = nullptr;
    unisono_request_t barrier = nullptr;
    ASSERT_TRUE(succeeded(
        unisono_reduce_start(&one, &sum, 1, UNISONO_INT32, UNISONO_SUM, 1, self.world, &request)));
    if (self.rank == 0) {
      ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &barrier)));
    }
    if (self.rank == 1) {
      int done = -1;
      refused.arrive_and_wait();
      EXPECT_TRUE(succeeded(unisono_test(&request, &done)));
    }
    if (self.rank != 2) {
      EXPECT_TRUE(failed(unisono_broadcast(nullptr, 4, UNISONO_INT32, 0, self.world),
                         UNISONO_ERROR_ARGUMENT));
    }
    if (self.rank == 0) {
      refused.arrive_and_wait();
      EXPECT_TRUE(failed_with_any(unisono_wait(&barrier),
                                  {UNISONO_ERROR_ARGUMENT, UNISONO_ERROR_PEER_ARGUMENT}));
      told.arrive_and_wait();
    }
    if (self.rank == 1) {
      told.arrive_and_wait();
      late.arrive_and_wait();
    }
    EXPECT_TRUE(succeeded(unisono_wait(&request)));
    self.finalize();
  });
}

// ---- ends ----

TEST(SplitPhase, FinalizeEndsPendingRequests) {
  run_threads(2, [](ThreadRank& self) {
    if (self.rank == 1) return;
    Sum sum(self.rank, self.ranks, 1);
    unisono_request_t request = nullptr;
    ASSERT_TRUE(succeeded(sum.start(self.world, &request)));
    self.finalize();
    EXPECT_TRUE(failed(unisono_wait(&request), UNISONO_ERROR_STATE, {"unisono_wait"}));
  });
}

TEST(SplitPhase, ARankThatLeavesFailsWhatWaitsForIt) {
  run_threads(3, [](ThreadRank& self) {
    if (self.rank == 1) return;
    Batch batch(self, 3);
    ASSERT_TRUE(batch.start(self.world));
    EXPECT_TRUE(failed(unisono_wait(&batch.requests[0]), UNISONO_ERROR_RANK_LOST, {"rank 1"}));
    EXPECT_EQ(batch.requests[0], nullptr);
    int index = -2;
    EXPECT_TRUE(failed(unisono_wait_any(batch.requests.data(), 3, &index), UNISONO_ERROR_RANK_LOST,
                       {"rank 1"}));
    EXPECT_TRUE(
        failed(unisono_wait_all(batch.requests.data(), 3), UNISONO_ERROR_RANK_LOST, {"rank 1"}));
    for (const unisono_request_t request : batch.requests) EXPECT_EQ(request, nullptr);
    self.finalize();
  });
}

// Without a thread that progresses operations, and with one.
TEST(SplitPhase, GoesOnWhileTheRankWaitsForAnotherCommunicator) {
  for (const char* const engine : {"inline", "helping"}) {
    for (const char* const agent : {"off", "on"}) {
      SCOPED_TRACE(std::string(engine) + ", agent " + agent);
      setenv("UNISONO_ENGINE", engine, 1);
      setenv("UNISONO_AGENT", agent, 1);
      for (const int ranks : {2, 3, 5}) {
        run_threads(ranks,
                    [](ThreadRank& self) { ASSERT_NO_FATAL_FAILURE(check_waits_elsewhere(self)); });
      }
    }
  }
  unsetenv("UNISONO_ENGINE");
  unsetenv("UNISONO_AGENT");
}

// The operator of a reduce takes a lock of the program, as Python's do, on a thread of the root
// that waits for another communicator.
struct Lock {
  std::mutex mutex;
  std::binary_semaphore is_wanted{0};

  static void add(void* target, const void* left, const void* right, std::int64_t count,
                  unisono_type_t type, void* user) {
    auto& self = *static_cast<Lock*>(user);
    self.is_wanted.release();
    const std::lock_guard held(self.mutex);
    add_int64(target, left, right, count, type, nullptr);
  }
};

TEST(SplitPhase, ALookDoesNotWaitForAnOperatorThatNeedsALockOfTheLookingThread) {
  setenv("UNISONO_ENGINE", "inline", 1);
  for (const char* const agent : {"off", "on"}) {
    SCOPED_TRACE(agent);
    setenv("UNISONO_AGENT", agent, 1);
    Lock lock;
    run_threads(2, [&lock](ThreadRank& self) {
      unisono_comm_t other = nullptr;
      ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &other)));
      unisono_op_t op = 0;
      ASSERT_TRUE(succeeded(unisono_op_create(&Lock::add, 1, &lock, &op)));
      const std::int64_t mine = self.rank + 1;
      std::int64_t sum = -1;
      unisono_request_t request = nullptr;
      const auto start = [&] {
        ASSERT_TRUE(succeeded(
            unisono_reduce_start(&mine, &sum, 1, UNISONO_INT64, op, 0, self.world, &request)));
      };
      if (self.rank == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        ASSERT_NO_FATAL_FAILURE(start());
        ASSERT_TRUE(succeeded(unisono_wait(&request)));
        ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
        ASSERT_TRUE(succeeded(unisono_barrier(other)));
      } else {
        ASSERT_NO_FATAL_FAILURE(start());
        std::unique_lock held(lock.mutex);
        std::thread waits([other] { ASSERT_TRUE(succeeded(unisono_barrier(other))); });
        lock.is_wanted.acquire();
        int done = -1;
        EXPECT_TRUE(succeeded(unisono_test(&request, &done)));
        EXPECT_EQ(done, 0);
        held.unlock();
        EXPECT_TRUE(succeeded(unisono_wait(&request)));
        EXPECT_EQ(sum, 3);
        EXPECT_TRUE(succeeded(unisono_barrier(self.world)));
        waits.join();
      }
      ASSERT_TRUE(succeeded(unisono_comm_free(other)));
    });
  }
  unsetenv("UNISONO_ENGINE");
  unsetenv("UNISONO_AGENT");
}

}  // namespace
}  // namespace unisono::harness::split_phase_test
