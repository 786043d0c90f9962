// SPDX-License-Identifier: BSD-3-Clause
// How a job behaves towards its machine: ranks that wait use no processor, a rank that is stopped
// for a while is waited for, and a job that is stopped as a whole goes on; memory has no names, and
// a limit that is too low is named.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/clock.hpp"
#include "harness/outcome.hpp"
#include "harness/scale.hpp"
#include "process/ranks.hpp"

namespace unisono::harness::machine_test {
namespace {

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class IdleRanks : public testing::TestWithParam<const char*> {};

TEST_P(IdleRanks, UseNoProcessorWhileTheyWait) {
  ProcessJob::Options options;
  options.environment["UNISONO_ENGINE"] = GetParam();
  ProcessJob job(
      4,
      [](ProcessRank& self) {
        for (int i = 0; i < 5; ++i) ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
        if (self.rank == 0) usleep(1'500'000);
        const double before = processor_seconds();
        ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
        const double used = processor_seconds() - before;
        std::printf("             rank %d used %.1f ms of its processor\n", self.rank, used * 1e3);
        if (self.rank != 0) {
          EXPECT_LT(used, 0.020 * kSlowdown);
        }
      },
      options);
  job.expect_all_clean();
}

INSTANTIATE_TEST_SUITE_P(Engines, IdleRanks, testing::Values("inline", "helping"),
                         [](const auto& suite) { return std::string(suite.param); });

// Operations for some seconds.
void work(ProcessRank& self) {
  self.say("ready");
  const std::int64_t end_ns = base::now_ns() + 5 * base::kSecond;
  std::int64_t rounds = 0;
  for (std::int64_t going_on = 1; going_on > 0; ++rounds) {
    std::int64_t mine = base::now_ns() < end_ns ? 1 : 0;
    ASSERT_TRUE(
        succeeded(unisono_allreduce(&mine, &going_on, 1, UNISONO_INT64, UNISONO_MIN, self.world)));
    double values[64];
    for (double& value : values) value = static_cast<double>(self.rank);
    ASSERT_TRUE(succeeded(
        unisono_allreduce(UNISONO_IN_PLACE, values, 64, UNISONO_FLOAT64, UNISONO_SUM, self.world)));
    ASSERT_EQ(values[63], 3.0);
  }
  self.say(fmt::format("{} rounds", rounds));
}

// In the middle of operations, each rank in its turn.
TEST(StoppedRank, IsWaitedForUpToTheBound) {
  ProcessJob::Options options;
  options.environment["UNISONO_DETECT_TIMEOUT"] = "30s";
  ProcessJob job(3, work, options);
  job.await_line_of_all();
  for (int rank = 0; rank < 3; ++rank) {
    job.signal(rank, SIGSTOP);
    usleep(rank == 1 ? 1'500'000 : 200'000);
    job.signal(rank, SIGCONT);
    usleep(50'000);
  }
  job.expect_all_clean();
}

// As by Ctrl-Z, for longer than the limit: no rank was waiting for so long.
TEST(StoppedJob, GoesOnWhereItWas) {
  ProcessJob::Options options;
  options.environment["UNISONO_DETECT_TIMEOUT"] = "500ms";
  ProcessJob job(3, work, options);
  job.await_line_of_all();
  for (int round = 0; round < 2; ++round) {
    for (int rank = 0; rank < 3; ++rank) job.signal(rank, SIGSTOP);
    usleep(1'200'000);
    for (int rank = 3; rank-- > 0;) job.signal(rank, SIGCONT);
    usleep(50'000);
  }
  job.expect_all_clean();
}

// Neither names that could stay behind nor a file system that could be full.
TEST(Memory, HasNoNameInAnyFileSystem) {
  const auto shm_before = unisono_files_in_shm();
  ProcessJob job(2, [](ProcessRank& self) {
    std::int32_t value = 1;
    ASSERT_TRUE(succeeded(
        unisono_allreduce(UNISONO_IN_PLACE, &value, 1, UNISONO_INT32, UNISONO_SUM, self.world)));
    std::ifstream maps("/proc/self/maps");
    int shared = 0;
    for (std::string line; std::getline(maps, line);) {
      EXPECT_EQ(line.find("/dev/shm"), std::string::npos) << line;
      if (line.find("rw-s") != std::string::npos && line.find("memfd:") != std::string::npos) {
        ++shared;
      }
    }
    EXPECT_GT(shared, 0) << "no shared memory at all?";
    self.say("mapped");
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
  });
  job.await_line_of_all();
  EXPECT_EQ(unisono_files_in_shm(), shm_before);
  job.expect_all_clean();
  EXPECT_TRUE(nothing_left(job, shm_before));
}

rlim_t mapped_bytes() {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// One rank that may not map the job's memory: its error names the limit, and the others do not
// hang.
TEST(Limits, AddressSpaceTooSmallIsNamed) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs terabytes of address space for itself";
  const auto shm_before = unisono_files_in_shm();
  for (const bool all : {true, false}) {
    ProcessJob::Options options;
    options.joins = false;
    options.environment["UNISONO_START_TIMEOUT"] = "2s";
    ProcessJob job(
        3,
        [all](ProcessRank& self) {
          const bool limited = all || self.rank == 1;
          const rlim_t limit = mapped_bytes() + (16 << 20);
          const rlimit limits{limit, limit};
          if (limited) {
            ASSERT_EQ(setrlimit(RLIMIT_AS, &limits), 0);
          }
          unisono_comm_t world = nullptr;
          int error = unisono_init(&world);
          if (limited) {
            EXPECT_TRUE(failed(error, UNISONO_ERROR_RESOURCES, {"RLIMIT_AS"}));
            return;
          }
          if (error == UNISONO_OK) error = unisono_barrier(world);
          EXPECT_NE(error, UNISONO_OK);
          EXPECT_STRNE(unisono_last_error(), "");
        },
        options);
    job.expect_all_clean();
    EXPECT_TRUE(nothing_left(job, shm_before));
  }
}

// Descriptors that init opened are closed again by finalize.
TEST(Descriptors, AreGivenBack) {
  ProcessJob::Options options;
  options.joins = false;
  ProcessJob job(
      2,
      [](ProcessRank&) {
        const auto open_descriptors = [] {
          const std::filesystem::directory_iterator entries("/proc/self/fd");
          return std::distance(begin(entries), end(entries));
        };
        const auto before = open_descriptors();
        unisono_comm_t world = nullptr;
        ASSERT_TRUE(succeeded(unisono_init(&world)));
        ASSERT_TRUE(succeeded(unisono_barrier(world)));
        ASSERT_TRUE(succeeded(unisono_finalize(world)));
        EXPECT_EQ(open_descriptors(), before);
      },
      options);
  job.expect_all_clean();
}

}  // namespace
}  // namespace unisono::harness::machine_test
