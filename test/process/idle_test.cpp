// SPDX-License-Identifier: BSD-3-Clause
// A job of which all ranks but one wait for ten seconds, in a collective, with an agent: each of
// them uses less than 50 ms of a processor, with all its threads.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "harness/outcome.hpp"
#include "harness/scale.hpp"
#include "process/ranks.hpp"

namespace unisono::harness::idle_test {
namespace {

constexpr unsigned kWaitSeconds = 10;
constexpr double kMostMs = 50.0 * kSlowdown;

double processor_ms() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

class IdleForLong : public testing::TestWithParam<const char*> {};

TEST_P(IdleForLong, RanksUseNoProcessor) {
  ProcessJob::Options options;
  options.environment = {{"UNISONO_AGENT", "on"}, {"UNISONO_ENGINE", GetParam()}};
  ProcessJob job(
      4,
      [](ProcessRank& self) {
        for (int i = 0; i < 5; ++i) ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
        if (self.rank == 0) sleep(kWaitSeconds);
        const double before = processor_ms();
        ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
        const double used = processor_ms() - before;
        std::printf("             rank %d used %.1f ms of its processor\n", self.rank, used);
        if (self.rank != 0) {
          EXPECT_LT(used, kMostMs);
        }
      },
      options);
  job.expect_all_clean();
}

INSTANTIATE_TEST_SUITE_P(Engines, IdleForLong, testing::Values("inline", "helping"),
                         [](const auto& suite) { return std::string(suite.param); });

}  // namespace
}  // namespace unisono::harness::idle_test
