// SPDX-License-Identifier: BSD-3-Clause
// `unisono tune` on a busy machine, with the kernel's times and samples made up.
#include "tune/load.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <ctime>
#include <string>
#include <vector>

#include "tune/tuning.hpp"

namespace unisono::tools::tune::tune_load_test {
namespace {

topology::UsableCores cores(std::uint64_t mask) {
  topology::UsableCores usable;
  usable.mask[0] = mask;
  return usable;
}

constexpr std::string_view kStat =
    "cpu  900 90 9 99999 9 9 9 90 0 0\n"
    "cpu0 100 20 30 5000 6 7 8 40 50 60\n"
    "cpu1 200 0 0 5000 0 0 0 0 0 0\n"
    "cpu12 1 2 3 4 5 6 7 8 9 10\n"
    "intr 12 34\n";

TEST(CoreTimes, AreThoseOfTheUsableCores) {
  // user, nice, system, irq and softirq; idle times and guests do not count.
  EXPECT_EQ(parse_core_times(kStat, cores(0b01), 100), (CoreTimes{1.65, 0.4}));
  EXPECT_EQ(parse_core_times(kStat, cores(0b11), 100), (CoreTimes{3.65, 0.4}));
  EXPECT_EQ(parse_core_times(kStat, cores(1 << 12), 1), (CoreTimes{19, 8}));
}

TEST(CoreTimes, AreUnknownWhereACoreOrAColumnIsMissing) {
  EXPECT_EQ(parse_core_times(kStat, cores(0b100), 100), std::nullopt);
  EXPECT_EQ(parse_core_times("cpu0 1 2 3\n", cores(1), 100), std::nullopt);
  EXPECT_EQ(parse_core_times("cpu0 1 2 3 x 5 6 7 8\n", cores(1), 100), std::nullopt);
  EXPECT_EQ(parse_core_times("", cores(1), 100), std::nullopt);
}

TEST(CoreTimes, OfThisMachineGrowWithWork) {
  const Moment begin = moment_now();
  EXPECT_GT(begin.wall_s, 0);
  Moment end;
  do end = moment_now();
  while (end.own_s <= begin.own_s);
  EXPECT_GE(end.wall_s, begin.wall_s);
  ASSERT_EQ(begin.cores.has_value(), end.cores.has_value());
  if (begin.cores) {
    EXPECT_GE(end.cores->busy_s, begin.cores->busy_s);
  }
}

// A child that measures is no other program.
TEST(Moment, HasTheTimeOfChildrenThatHaveEnded) {
  constexpr double kChild_s = 0.05;
  const Moment begin = moment_now();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    while (static_cast<double>(std::clock()) / CLOCKS_PER_SEC < kChild_s) {
    }
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_GE(moment_now().own_s - begin.own_s, kChild_s);
}

// Ten seconds of two cores.
Moment after(double busy_s, double own_s, double stolen_s = 0) {
  return {.cores = CoreTimes{100 + busy_s, 10 + stolen_s}, .own_s = 5 + own_s, .wall_s = 60};
}
const Moment kBegin{.cores = CoreTimes{100, 10}, .own_s = 5, .wall_s = 50};

TEST(Disturbance, IsTheTimeOfOtherProgramsBeyondALimit) {
  EXPECT_EQ(why_disturbed(kBegin, after(20, 20), 2, {}), "");
  EXPECT_EQ(why_disturbed(kBegin, after(20, 18.1), 2, {}), "");
  EXPECT_EQ(why_disturbed(kBegin, after(20, 12), 2, {}),
            "other programs took 40 % of the processor time, at most 10 % may");
  EXPECT_EQ(why_disturbed(kBegin, after(12, 12, 6), 2, {}),
            "the host of this virtual machine took 30 % of the processor time, at most 10 % may");
}

// The host has to wake a processor that slept.
TEST(Disturbance, IsNotALittleMoreOfStolenTimeIfSamplesAgree) {
  const std::vector<double> agree = {0.1, 0.1, 0.4}, differ = {0.1, 0.3, 0.4};
  EXPECT_EQ(why_disturbed(kBegin, after(12, 12, 4), 2, agree), "");
  EXPECT_EQ(why_disturbed(kBegin, after(12, 12, 4), 2, differ),
            "the host of this virtual machine took 20 % of the processor time, at most 10 % may");
  EXPECT_EQ(why_disturbed(kBegin, after(12, 12, 6), 2, agree),
            "the host of this virtual machine took 30 % of the processor time, at most 25 % may");
}

TEST(Disturbance, IsTheSpreadOfMostSamples) {
  const std::vector<double> one_of_many = {0.1, 0.2, 5, 0.1, 0.1};
  EXPECT_EQ(why_disturbed(kBegin, after(20, 20), 2, one_of_many), "");
  const std::vector<double> most = {0.1, 2, 5, 0.8, 0.1};
  EXPECT_EQ(why_disturbed(kBegin, after(20, 20), 2, most),
            "repetitions deviate by 80 % in the median, at most 50 % may");
  // Also where the kernel does not tell of other programs.
  Moment unknown = kBegin;
  unknown.cores.reset();
  EXPECT_EQ(why_disturbed(unknown, after(20, 0), 2, {}), "");
  EXPECT_NE(why_disturbed(unknown, after(20, 0), 2, most), "");
}

struct Script {
  std::vector<std::string> disturbances;  // of each measurement in turn
  std::size_t measured = 0;
  std::vector<std::string> said;

  base::Result<std::string> run() {
    return measure_undisturbed({.measure =
                                    [this] {
                                      ++measured;
                                      return base::success();
                                    },
                                .why_disturbed = [this] { return disturbances.at(measured - 1); },
                                .again = [this](const std::string& why) { said.push_back(why); }});
  }
};

TEST(Attempts, EndWithTheFirstQuietOne) {
  Script script{.disturbances = {"noise", "", "never asked"}, .said = {}};
  const auto why = script.run();
  ASSERT_TRUE(why.ok());
  EXPECT_EQ(*why, "");
  EXPECT_EQ(script.measured, 2U);
  EXPECT_EQ(script.said, std::vector<std::string>{"noise"});
}

TEST(Attempts, MayBeOneOnly) {
  int measured = 0;
  const auto why = measure_undisturbed({.measure =
                                            [&] {
                                              ++measured;
                                              return base::success();
                                            },
                                        .why_disturbed = [] { return std::string("busy"); },
                                        .again = [](const std::string&) { FAIL(); },
                                        .most = 1});
  ASSERT_TRUE(why.ok());
  EXPECT_EQ(*why, "busy");
  EXPECT_EQ(measured, 1);
}

TEST(Attempts, AreBoundedAndTellTheLastReason) {
  Script script{.disturbances = {"a", "b", "c", "never asked"}, .said = {}};
  const auto why = script.run();
  ASSERT_TRUE(why.ok());
  EXPECT_EQ(*why, "c");
  EXPECT_EQ(script.measured, std::size_t{kAttempts});
}

TEST(Attempts, PassOnAnError) {
  const auto failed =
      measure_undisturbed({.measure =
                               [] {
                                 return base::Status(base::Error{base::Code::system, "no socket"});
                               },
                           .why_disturbed = [] { return std::string("busy"); },
                           .again = [](const std::string&) { FAIL(); }});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "no socket");
}

TEST(PriceError, IsTheSpreadOfTheRatios) {
  EXPECT_EQ(price_error({}), 0);
  EXPECT_DOUBLE_EQ(price_error({{"a", 100, 1, 100}, {"b", 50, 1, 50}}), 0);
  // Too high counts as too low.
  EXPECT_NEAR(price_error({{"a", 100, 1, 200}, {"b", 100, 1, 50}}), 1, 1e-12);
  EXPECT_NEAR(price_error({{"a", 100, 1, 150}}), 0.5, 1e-12);
}

}  // namespace
}  // namespace unisono::tools::tune::tune_load_test
