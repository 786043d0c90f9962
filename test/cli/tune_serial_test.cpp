// SPDX-License-Identifier: BSD-3-Clause
// The fit of serial reductions recovers the parameters of the closed form, and has the residuals.
#include "tune/serial_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/prng.hpp"
#include "model/closed_form/nic_reduce.hpp"

namespace unisono::tools::tune::tune_serial_test {
namespace {

// Receiving and combining 8 bytes takes 1920 ns, and each further byte 0.5.
std::vector<SerialTime> serial_times(double noise) {
  base::Prng prng(3);
  std::vector<SerialTime> times;
  for (const int ranks : {4, 6, 8}) {
    for (const std::int64_t bytes : {8, 4096, 65536}) {
      const model::nic_reduce::Parameters elan{
          .start_up = 9200,
          .latency = 2100,
          .reception = 420,
          .reduction = 1500 + 0.5 * static_cast<double>(bytes - 8)};
      const double exact = model::nic_reduce::serial(elan, ranks);
      times.push_back({ranks, bytes, exact * (1 + noise * (2 * prng.unit() - 1))});
    }
  }
  return times;
}

TEST(SerialFit, OfExactTimesHasTheParametersOfTheClosedForm) {
  const auto fit = fit_serial(serial_times(0));
  ASSERT_TRUE(fit.ok()) << fit.error().message;
  EXPECT_NEAR(fit->start_up_and_latency.value, 9200 + 2100, 1e-3);
  EXPECT_NEAR(fit->each.value, 420 + 1500 - 0.5 * 8, 1e-3);
  EXPECT_NEAR(fit->per_byte.value, 0.5, 1e-9);
  EXPECT_LT(fit->fit.deviation, 1e-9);
}

TEST(SerialFit, HasTheResidualOfEachTime) {
  const std::vector<SerialTime> times = serial_times(0.05);
  const auto fit = fit_serial(times);
  ASSERT_TRUE(fit.ok()) << fit.error().message;
  ASSERT_EQ(fit->fit.residuals.size(), times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_NEAR(fit->fit.residuals[i],
                (times[i].ns - fit->ns(times[i].ranks, times[i].bytes)) / times[i].ns, 1e-12);
    EXPECT_LT(std::abs(fit->fit.residuals[i]), 0.1);
  }
  EXPECT_NEAR(fit->start_up_and_latency.value, 11300, fit->start_up_and_latency.plus_minus);
  EXPECT_GT(fit->fit.deviation, 0);
}

TEST(SerialFit, RefusesOneNumberOfRanks) {
  std::vector<SerialTime> times = serial_times(0);
  std::erase_if(times, [](const SerialTime& each) { return each.ranks != 4; });
  times.push_back(times.back());
  EXPECT_FALSE(fit_serial(times).ok());
}

}  // namespace
}  // namespace unisono::tools::tune::tune_serial_test
