// SPDX-License-Identifier: BSD-3-Clause
// Fits of synthetic data recover the parameters that made them.
#include "model/fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/prng.hpp"
#include "model/closed_form/nic_reduce.hpp"
#include "model/price.hpp"

namespace unisono::model::fit_test {
namespace {

constexpr nic_reduce::Parameters kElan{
    .start_up = 9200, .latency = 2100, .reception = 420, .reduction = 1500};

// From -1 to 1.
double noise(base::Prng& prng) { return 2 * prng.unit() - 1; }

// A reduction by an f-nomial tree; a degree of at least `ranks` is the serial reduction. Its time
// is linear in C, L and r + c (Moody et al., SC 2003, section 5). Their factors are the times for
// unit parameters. Only trees of at least two phases tell C and L apart.
Observation tree(int ranks, int degree, double ns) {
  return {{1, nic_reduce::fnomial({.latency = 1}, ranks, degree),
           nic_reduce::fnomial({.reception = 1}, ranks, degree)},
          ns};
}

std::vector<Observation> trees(double relative_noise, std::uint64_t seed) {
  base::Prng prng(seed);
  std::vector<Observation> times;
  for (const int ranks : {2, 4, 5, 8, 13, 16, 27, 31, 32}) {
    for (const int degree : {2, 3, 4, 8, 32}) {
      const double exact = nic_reduce::fnomial(kElan, ranks, degree);
      times.push_back(tree(ranks, degree, exact * (1 + relative_noise * noise(prng))));
    }
  }
  return times;
}

TEST(Fit, OfExactTreesIsExact) {
  const auto fit = fit_linear(trees(0, 1));
  ASSERT_TRUE(fit.ok()) << fit.error().message;
  EXPECT_NEAR(fit->parameters[0].value, 9200, 1e-3);
  EXPECT_NEAR(fit->parameters[1].value, 2100, 1e-3);
  EXPECT_NEAR(fit->parameters[2].value, 1920, 1e-3);
  EXPECT_LT(fit->deviation, 1e-9);
}

// 95 of 100 intervals hold the true value, on the average.
TEST(Fit, IntervalsHoldTheTrueParameters) {
  int held = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const auto fit = fit_linear(trees(0.05, seed));
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    const Estimate& latency = fit->parameters[1];
    EXPECT_NEAR(latency.value, 2100, 500) << "seed " << seed;
    EXPECT_LT(fit->deviation, 0.05) << "seed " << seed;
    if (std::abs(latency.value - 2100) <= latency.plus_minus) ++held;
  }
  EXPECT_GT(held, 180);
  EXPECT_LT(held, 200);
}

TEST(Fit, OfALineHasItsResiduals) {
  const std::vector<LineTime> times = {{0, 100}, {10, 150}, {20, 200}, {30, 500}, {40, 300}};
  const auto fit = fit_line(times);
  ASSERT_TRUE(fit.ok()) << fit.error().message;
  ASSERT_EQ(fit->fit.residuals.size(), times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double fitted =
        fit->each.value + fit->per_byte.value * static_cast<double>(times[i].bytes);
    EXPECT_NEAR(fit->fit.residuals[i], (times[i].ns - fitted) / times[i].ns, 1e-12);
  }
  // The outlier stands out.
  EXPECT_GT(fit->fit.residuals[3], 0.3);
  EXPECT_GT(fit->per_byte.plus_minus, 0);
}

TEST(Fit, NoParameterIsNegative) {
  const auto fit = fit_line(std::vector<LineTime>{{1, 100}, {2, 90}, {3, 80}, {4, 70}});
  ASSERT_TRUE(fit.ok()) << fit.error().message;
  EXPECT_EQ(fit->per_byte.value, 0);
  EXPECT_EQ(fit->per_byte.plus_minus, 0);
  EXPECT_NEAR(fit->each.value, 82, 3);
}

// Calls in which one rank sends to several, receives from several, does both, or sends many to one.
struct Fan {
  schedule::Collective collective;
  std::string_view algorithm;
  int segments = 0;
};
constexpr Fan kFans[] = {
    {schedule::Collective::scatter, "linear"},     {schedule::Collective::gather, "linear"},
    {schedule::Collective::alltoall, "linear"},    {schedule::Collective::broadcast, "flat"},
    {schedule::Collective::broadcast, "chain", 8}, {schedule::Collective::broadcast, "chain", 32}};

// The price by C, o, g and r, with a core for each rank.
double price_of_fan(const Fan& fan, int ranks, std::span<const double> parameters) {
  const algorithm::Algorithm& row = *algorithm::find(fan.collective, fan.algorithm);
  const schedule::Shape shape{.collective = fan.collective, .ranks = ranks, .count = 64};
  algorithm::Parameters choice;
  choice.values[0] = fan.segments;
  std::vector<schedule::Schedule> set;
  for (int r = 0; r < ranks; ++r) set.push_back(row.build(shape, choice, r));
  PathParameters path;
  path.latency.number = 90;
  path.start_up = {{{}, {.number = parameters[0], .where = "test"}}};
  path.overhead.number = parameters[1];
  path.gap.number = parameters[2];
  path.reception.points = {{0, {.number = parameters[3], .where = "test"}}};
  Machine machine;
  machine.cores_per_host = 64;
  machine.paths = {path};
  return price(set, machine, {.type = arith::Type::float64}).ns;
}

std::vector<PredictedTime> fans(const std::vector<double>& truth, double relative_noise) {
  base::Prng prng(7);
  std::vector<PredictedTime> times;
  for (const int ranks : {2, 3, 4, 6}) {
    for (const Fan& fan : kFans) {
      const double exact = price_of_fan(fan, ranks, truth);
      times.push_back(
          {[fan, ranks](std::span<const double> each) { return price_of_fan(fan, ranks, each); },
           exact * (1 + relative_noise * noise(prng))});
    }
  }
  return times;
}

// Whether receiving, sending or the gap limits the messages, from a start far away.
TEST(Fit, OfManyMessagesRecoversTheirCosts) {
  const std::vector<std::vector<double>> truths = {
      {250, 20, 55, 35}, {250, 12, 90, 60}, {900, 40, 70, 5}};
  for (const auto& truth : truths) {
    const auto fit = fit_predictions(fans(truth, 0), {100, 10, 50, 10});
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      EXPECT_NEAR(fit->parameters[i].value, truth[i], 0.01 * truth[i]) << "parameter " << i;
    }
    EXPECT_LT(fit->deviation, 1e-3);
    const auto noisy = fit_predictions(fans(truth, 0.03), {100, 10, 50, 10});
    ASSERT_TRUE(noisy.ok()) << noisy.error().message;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      EXPECT_NEAR(noisy->parameters[i].value, truth[i], 2 * noisy->parameters[i].plus_minus + 1)
          << "parameter " << i;
      EXPECT_LT(noisy->parameters[i].plus_minus, truth[i] + 20);
    }
  }
}

// Without a gap at the start, and one that is never felt, messages do not tell it.
TEST(Fit, RefusesAParameterThatNoTimeDependsOn) {
  const auto fit = fit_predictions(fans({250, 40, 0, 20}, 0), {250, 40, 0, 20});
  ASSERT_FALSE(fit.ok());
  EXPECT_EQ(fit.error().message, "no observation has parameter 2");
}

TEST(Fit, RefusesWhatCannotBeFitted) {
  // Serial reductions alone have C + L only.
  const auto serial =
      fit_linear(std::vector{tree(2, 9, 10), tree(3, 9, 12), tree(4, 9, 14), tree(5, 9, 16)});
  ASSERT_FALSE(serial.ok());
  EXPECT_EQ(serial.error().message, "the observations do not tell parameter 1 from those before");
  EXPECT_FALSE(fit_line(std::vector<LineTime>{{1, 100}, {2, 90}}).ok());
  EXPECT_FALSE(fit_line(std::vector<LineTime>{{1, 100}, {2, 0}, {3, 5}}).ok());
  EXPECT_FALSE(fit_line({}).ok());
}

}  // namespace
}  // namespace unisono::model::fit_test
