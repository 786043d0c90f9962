// SPDX-License-Identifier: BSD-3-Clause
// A job whose ranks are threads of the test: run_threads(P, body) gives each of P threads a world
// communicator, runs the body on all of them, finalizes and joins. Expectations may be used on any
// rank; a failed one names its rank. A body that throws or returns early fails the test and leaves
// the job, so that the others get RANK_LOST and not a hang. Should ranks hang all the same, the
// guard says which, and aborts. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "harness/outcome.hpp"
#include "harness/scale.hpp"
#include "unisono/unisono.h"

namespace unisono::harness {

// Far above the time of any test, even on a busy machine under a sanitizer.
inline constexpr std::chrono::seconds kHangGuard{300};

// One rank, as its body sees it.
class ThreadRank {
 public:
  ThreadRank(int rank_of_job, int ranks_of_job, unisono_comm_t world_of_job)
      : rank(rank_of_job), ranks(ranks_of_job), world(world_of_job) {}

  // Leaves the job before the body ends; the body then says what it expects of the result.
  int finalize() {
    finalized_ = true;
    return unisono_finalize(world);
  }
  bool finalized() const { return finalized_; }

  const int rank;
  const int ranks;
  const unisono_comm_t world;

 private:
  bool finalized_ = false;
};

using RankBody = std::function<void(ThreadRank&)>;

// Knows which ranks still run.
class HangGuard {
 public:
  explicit HangGuard(int ranks) : running_(static_cast<std::size_t>(ranks), true), left_(ranks) {}

  void done(int rank) {
    const std::lock_guard lock(mutex_);
    running_[static_cast<std::size_t>(rank)] = false;
    --left_;
    changed_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    const auto deadline = std::chrono::system_clock::now() + kHangGuard;
    if (changed_.wait_until(lock, deadline, [this] { return left_ == 0; })) return;
    std::fprintf(stderr, "HANG: after %lld s these of %zu ranks still run:",
                 static_cast<long long>(kHangGuard.count()), running_.size());
    for (std::size_t rank = 0; rank < running_.size(); ++rank) {
      if (running_[rank]) std::fprintf(stderr, " %zu", rank);
    }
    std::fprintf(stderr, "\n");
    std::abort();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> running_;
  int left_;
};

inline void run_rank(unisono_threads_t threads, int rank, int ranks, const RankBody& body) {
  SCOPED_TRACE("rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  unisono_comm_t world = nullptr;
  ASSERT_TRUE(succeeded(unisono_init_thread(threads, rank, &world)));
  ThreadRank self(rank, ranks, world);
  try {
    body(self);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "the body threw: " << error.what();
  }
  if (!self.finalized()) {
    EXPECT_TRUE(succeeded(self.finalize()));
  }
}

inline void run_threads(int ranks, const RankBody& body) {
  unisono_threads_t threads = nullptr;
  ASSERT_TRUE(succeeded(unisono_threads_create(ranks, &threads)));
  HangGuard guard(ranks);
  std::vector<std::thread> pool;
  for (int rank = 0; rank < ranks; ++rank) {
    pool.emplace_back([&, rank] {
      run_rank(threads, rank, ranks, body);
      guard.done(rank);
    });
  }
  guard.wait();
  for (std::thread& thread : pool) thread.join();
  EXPECT_TRUE(succeeded(unisono_threads_free(threads)));
}

// The numbers of ranks that the tests of results run on.
inline std::vector<int> rank_counts() {
  if (kSanitized) return {1, 2, 3, 5, 8};
  return {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33};
}

}  // namespace unisono::harness
