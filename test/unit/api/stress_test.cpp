// SPDX-License-Identifier: BSD-3-Clause
// Long runs: mixed operations back to back with ranks that dawdle at random, two jobs at once in
// one process, and jobs one after the other. Every result is checked.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "base/prng.hpp"
#include "harness/elements.hpp"
#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::stress_test {
namespace {

// One rank's run of operations that all ranks draw from the same seed.
class MixedRun {
 public:
  MixedRun(const ThreadRank& self, std::uint64_t seed)
      : rank_(self.rank),
        ranks_(self.ranks),
        comm_(self.world),
        shared_(seed),
        own_(seed + 1000 + static_cast<std::uint64_t>(self.rank)) {}

  testing::AssertionResult run(std::int64_t operations) {
    for (std::int64_t i = 0; i < operations; ++i) {
      dawdle();
      if (auto result = one(i); !result) return result << " (operation " << i << ")";
    }
    return testing::AssertionSuccess();
  }

 private:
  // About one rank in a thousand operations sleeps, up to 200 us.
  void dawdle() {
    if (own_.below(1000) != 0) return;
    std::this_thread::sleep_for(std::chrono::microseconds(own_.below(200)));
  }

  testing::AssertionResult one(std::int64_t i) {
    const std::uint64_t kind = shared_.below(5);
    const int root = static_cast<int>(shared_.below(static_cast<std::uint64_t>(ranks_)));
    const std::size_t count = shared_.below(50) == 0 ? shared_.below(3000) : shared_.below(20);
    input_.assign(count, i + rank_);
    output_.assign(kind == 4 ? count * static_cast<std::size_t>(ranks_) : count, -1);
    const auto signed_count = std::ssize(input_);
    const std::int64_t sum = i * ranks_ + std::int64_t{ranks_} * (ranks_ - 1) / 2;
    switch (kind) {
      case 0:
        return succeeded(unisono_barrier(comm_));
      case 1:
        return check(unisono_broadcast(input_.data(), signed_count, UNISONO_INT64, root, comm_),
                     input_, i + root);
      case 2:
        return check(unisono_reduce(input_.data(), output_.data(), signed_count, UNISONO_INT64,
                                    UNISONO_SUM, root, comm_),
                     output_, rank_ == root ? sum : -1);
      case 3:
        return check(unisono_allreduce(input_.data(), output_.data(), signed_count, UNISONO_INT64,
                                       UNISONO_SUM, comm_),
                     output_, sum);
      default:
        if (const auto done = succeeded(unisono_allgather(input_.data(), output_.data(),
                                                          signed_count, UNISONO_INT64, comm_));
            !done) {
          return done;
        }
        return check_blocks(count, i);
    }
  }

  static testing::AssertionResult check(int error, const std::vector<std::int64_t>& values,
                                        std::int64_t expected) {
    if (error != UNISONO_OK) return succeeded(error);
    for (const std::int64_t value : values) {
      if (value != expected) {
        return testing::AssertionFailure() << "got " << value << ", expected " << expected;
      }
    }
    return testing::AssertionSuccess();
  }
  testing::AssertionResult check_blocks(std::size_t count, std::int64_t i) const {
    for (std::size_t at = 0; at < output_.size(); ++at) {
      const std::int64_t expected = i + static_cast<std::int64_t>(at / count);
      if (output_[at] != expected) {
        return testing::AssertionFailure() << "got " << output_[at] << ", expected " << expected;
      }
    }
    return testing::AssertionSuccess();
  }

  int rank_;
  int ranks_;
  unisono_comm_t comm_;
  base::Prng shared_;
  base::Prng own_;
  std::vector<std::int64_t> input_;
  std::vector<std::int64_t> output_;
};

void run_mixed_job(int ranks, std::int64_t operations, std::uint64_t seed) {
  run_threads(ranks, [=](ThreadRank& self) {
    MixedRun run(self, seed);
    ASSERT_TRUE(run.run(operations));
  });
}

TEST(Stress, MixedOperationsBackToBackWithSkew) { run_mixed_job(4, scaled(100000), 11); }

TEST(Stress, MixedOperationsOfTwoRanks) { run_mixed_job(2, scaled(50000), 12); }

// A sanitizer makes each turn of all ranks many times longer.
TEST(Stress, MixedOperationsOfMoreRanksThanProcessors) {
  run_mixed_job(16, kSanitized ? 100 : 5000, 13);
}

TEST(Stress, TwoJobsAtOnce) {
  std::thread other([] { run_mixed_job(3, scaled(10000), 14); });
  run_mixed_job(4, scaled(10000), 15);
  other.join();
}

TEST(Stress, JobsOneAfterTheOther) {
  for (std::int64_t job = scaled(60); job > 0; --job) {
    run_mixed_job(1 + static_cast<int>(job % 5), 20, static_cast<std::uint64_t>(job));
  }
}

// The root runs as far ahead as it is let, while another rank has not even begun: nothing is lost.
TEST(Stress, ARankThatComesLateMissesNothing) {
  for (const int late : {0, 1, 2}) {
    run_threads(3, [=](ThreadRank& self) {
      const int root = late == 0 ? 1 : 0;
      if (self.rank == late) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      for (std::int64_t i = 0; i < 1000; ++i) {
        std::int64_t value = self.rank == root ? i : -1;
        ASSERT_TRUE(succeeded(unisono_broadcast(&value, 1, UNISONO_INT64, root, self.world)));
        ASSERT_EQ(value, i);
      }
      for (std::int64_t i = 0; i < 1000; ++i) {
        const std::int64_t mine = i + self.rank;
        std::int64_t sum = -1;
        ASSERT_TRUE(succeeded(
            unisono_reduce(&mine, &sum, 1, UNISONO_INT64, UNISONO_SUM, late, self.world)));
        ASSERT_EQ(sum, self.rank == late ? 3 * i + 3 : -1);
      }
    });
  }
}

// The same for operations that are done in several pieces, where pieces wait for each other.
TEST(Stress, ARankThatComesLateToLongOperations) {
  run_threads(3, [](ThreadRank& self) {
    std::vector<double> values(100003);
    if (self.rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (int i = 0; i < 5; ++i) {
      if (self.rank == 0) std::fill(values.begin(), values.end(), i);
      ASSERT_TRUE(succeeded(
          unisono_broadcast(values.data(), std::ssize(values), UNISONO_FLOAT64, 0, self.world)));
      ASSERT_EQ(values, std::vector<double>(values.size(), i));
    }
  });
}

// A rank that leaves right after the last operation takes nothing from those still in it.
TEST(Stress, LeavingAtOnceAfterTheLastOperation) {
  for (std::int64_t job = scaled(100); job > 0; --job) {
    run_threads(4, [=](ThreadRank& self) {
      std::int64_t value = self.rank == job % 4 ? job : 0;
      ASSERT_TRUE(succeeded(
          unisono_broadcast(&value, 1, UNISONO_INT64, static_cast<int>(job % 4), self.world)));
      ASSERT_EQ(value, job);
      std::int64_t sum = 0;
      ASSERT_TRUE(
          succeeded(unisono_reduce(&value, &sum, 1, UNISONO_INT64, UNISONO_SUM, 0, self.world)));
      ASSERT_EQ(sum, self.rank == 0 ? 4 * job : 0);
      ASSERT_TRUE(succeeded(self.finalize()));
    });
  }
}

}  // namespace
}  // namespace unisono::harness::stress_test
