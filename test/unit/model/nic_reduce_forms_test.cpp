// SPDX-License-Identifier: BSD-3-Clause
// The numbers that Moody et al. state, from the parameters of their table 2.
#include "model/closed_form/nic_reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "unit/model/shipped.hpp"

namespace unisono::model::nic_reduce::nic_reduce_forms_test {
namespace {

Parameters of_crescendo(arith::Operator op, arith::Type type, int elements) {
  const Machine machine = shipped("crescendo");
  const std::int64_t bytes = elements * static_cast<std::int64_t>(arith::type_size(type));
  return parameters_of(remote_path(machine, Engine::nic, bytes), op, type, bytes);
}
Parameters float64_sum(int elements) {
  return of_crescendo(arith::Operator::sum, arith::Type::float64, elements);
}

TEST(NicReduce, SerialReductionIsLinearInTheRanks) {
  const Parameters p = float64_sum(1);
  EXPECT_DOUBLE_EQ(serial(p, 2), 9200 + 2100 + 1920);
  EXPECT_DOUBLE_EQ(serial(p, 13), 9200 + 2100 + 12 * 1920);
  // The flat tree is the serial reduction.
  EXPECT_DOUBLE_EQ(fnomial(p, 13, 13), serial(p, 13));
}

TEST(NicReduce, TheExampleOfFigureEight) {
  // 16 nodes, degree 3: two full phases of two children, and one child in the third.
  const Parameters p{.start_up = 1000, .latency = 100, .reception = 8, .reduction = 2};
  EXPECT_DOUBLE_EQ(fnomial(p, 16, 3), 1000 + 3 * 100 + 2 * 2 * 10 + 10);
  EXPECT_DOUBLE_EQ(fnomial(p, 16, 4), 1000 + 2 * 100 + 2 * 3 * 10);
  EXPECT_DOUBLE_EQ(fnomial(p, 1, 2), 1000);
}

TEST(NicReduce, AnyTreeThatIsFullAgreesWithTheFullForm) {
  const Parameters p = float64_sum(2);
  for (int degree = 2; degree <= 16; ++degree) {
    for (int ranks = degree; ranks <= 4096; ranks *= degree) {
      EXPECT_NEAR(fnomial(p, ranks, degree), fnomial_full(p, ranks, degree),
                  1e-9 * fnomial(p, ranks, degree));
    }
  }
}

// Section 6.2, figure 10.
TEST(NicReduce, TheBestDegreeOn31NodesIsThePublishedOne) {
  EXPECT_EQ(best_degree(float64_sum(1), 31, 31), 4);
  EXPECT_EQ(best_degree(float64_sum(2), 31, 31), 2);
  EXPECT_EQ(best_degree(float64_sum(4), 31, 31), 2);
  EXPECT_EQ(best_degree(float64_sum(8), 31, 31), 2);
}

// Appendix B.
TEST(NicReduce, TheOptimumSolvesItsEquationAndMinimizesTheFullForm) {
  for (const int elements : {1, 2, 4, 8}) {
    for (const auto op : {arith::Operator::sum, arith::Operator::max}) {
      for (const auto type : {arith::Type::int32, arith::Type::float64}) {
        const Parameters p = of_crescendo(op, type, elements);
        const double f = optimal_degree(p);
        EXPECT_NEAR(f * (std::log(f) - 1), p.latency / (p.reception + p.reduction) - 1, 1e-9);
        for (const double other : {f * 0.99, f * 1.01}) {
          EXPECT_LT(fnomial_full(p, 1e6, f), fnomial_full(p, 1e6, other)) << f;
        }
        const int low = std::max(2, static_cast<int>(f)), high = std::max(2, low + 1);
        EXPECT_GE(low, 2);
        EXPECT_LE(high, 6);
      }
    }
  }
}

TEST(NicReduce, TheRangeOfTheBestDegreeIsTwoToSix) {
  Parameters p = float64_sum(1);
  p.reduction = 0;
  EXPECT_GT(optimal_degree(p), 5);
  EXPECT_LT(optimal_degree(p), 6);
  // Five messages then take as long as the latency.
  EXPECT_NEAR(5 * p.reception, p.latency, 1e-9);
  for (p.reduction = 0; p.reduction < 100'000; p.reduction += 50) {
    const double f = optimal_degree(p);
    EXPECT_GE(f, 1);
    EXPECT_LE(f, 6);
  }
}

// Section 6.3 gives 40 and 65 us on 906 nodes of ALC, which include a barrier of about 10 us.
TEST(NicReduce, TheForecastFor906NodesIsWithin15PercentOfThePublishedLatency) {
  const double barrier = shipped("alc").hardware_barrier->ns();
  const double int32 = fnomial(of_crescendo(arith::Operator::sum, arith::Type::int32, 1), 906, 4);
  EXPECT_NEAR(int32 + barrier, 40e3, 6e3);
  EXPECT_NEAR(fnomial(float64_sum(1), 906, 4) + barrier, 65e3, 9.75e3);
}

}  // namespace
}  // namespace unisono::model::nic_reduce::nic_reduce_forms_test
