// SPDX-License-Identifier: BSD-3-Clause
// Cross test: every algorithm x ranks x roots x types x operators x engines x transports, against
// one naive reference, bit for bit; separate buffers and in place; operators that do not commute.
// With the argument `--full` (label slow) every P up to 12, otherwise a sample of them. What does
// not apply is counted and printed.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "algorithm/algorithm.hpp"
#include "cross/combination.hpp"
#include "cross/trial.hpp"

namespace unisono::test::cross_test {
namespace {

using algorithm::Algorithm;
using arith::Operator;
using arith::Type;
using schedule::Collective;
using schedule::Shape;

class Cross : public testing::TestWithParam<Combination> {
 protected:
  void check(const Algorithm& row, const Shape& shape, const Material& of, bool in_place) {
    SCOPED_TRACE(row.name);
    ASSERT_NO_FATAL_FAILURE(Trial(shape, of, {.in_place = in_place}).run(*world_));
    ++cells_;
  }

  void check_types(const Algorithm& row, const Shape& shape, bool in_place) {
    for (int t = 0; t < arith::kTypeCount; ++t) {
      const auto type = static_cast<Type>(t);
      if (!schedule::is_reduction(shape.collective)) {
        check(row, shape, material(type, Operator::sum), in_place);
        continue;
      }
      for (int o = 0; o < arith::kOperatorCount; ++o) {
        const auto op = static_cast<Operator>(o);
        if (arith::fits(op, type)) check(row, shape, material(type, op), in_place);
      }
    }
  }

  // More than the receive buffers hold at once, and not much more: with all algorithms, long
  // vectors would be most of this test's time. Single copies need none.
  void check_segments(const Algorithm& row, int ranks) {
    const bool has_windows = std::string(GetParam().network) != "pull" && ranks > 1;
    const bool has_blocks = schedule::has_blocks(row.collective);
    for (std::int64_t count = has_blocks ? 80'002 / ranks : 40'001;; count *= 2) {
      const Shape shape{row.collective, ranks, 0, count, false};
      Trial trial(shape, material(Type::float64, Operator::sum), {});
      const bool is_cut = trial.segments(*world_) > 1;
      if (has_windows && !is_cut) {
        ASSERT_LT(count, 80'000) << row.name << " is not cut";
        continue;
      }
      SCOPED_TRACE(row.name);
      ASSERT_NO_FATAL_FAILURE(trial.run(*world_));
      ++cells_;
      return;
    }
  }

  void check_row(const Algorithm& row, int ranks) {
    std::vector<algorithm::Parameters> choices = {
        algorithm::default_parameters(row, {row.collective, ranks, 0, 1, false})};
    if (!row.parameters.empty()) {
      for (const int value : {row.parameters[0].low, ranks}) {
        choices.push_back(choices[0]);
        choices.back().values[0] = value;
      }
    }
    const int roots = schedule::is_rooted(row.collective) ? ranks : 1;
    for (const auto& parameters : choices) {
      // Neither the root nor the count matters to this.
      if (!algorithm::why_illegal(row, {row.collective, ranks, 0, 1, false}, parameters).empty()) {
        ++not_legal_;
        continue;
      }
      world_->override_with(row, parameters);
      for (int root = 0; root < roots; ++root) {
        for (const std::int64_t count : {0, 1, 7, 300}) {
          const Shape shape{row.collective, ranks, root, count, false};
          check(row, shape, material(Type::float64, Operator::sum), false);
          check(row, shape, material(Type::int32, Operator::sum), true);
        }
      }
      if (row.collective == Collective::barrier) continue;
      if (all_types_at(ranks)) {
        check_types(row, {row.collective, ranks, roots - 1, 5, false}, ranks % 2 == 0);
      }
      if (schedule::is_reduction(row.collective) && row.keeps_order) {
        for (const std::int64_t count : {1, 300}) {
          check(row, {row.collective, ranks, roots - 1, count, true}, affine_maps(), count == 1);
        }
      }
      if (parameters == choices[0]) check_segments(row, ranks);
    }
  }

  std::unique_ptr<World> world_;
  std::int64_t cells_ = 0;
  std::int64_t not_legal_ = 0;
};

TEST_P(Cross, EveryAlgorithmEqualsTheReference) {
  for (const int ranks : swept_ranks()) {
    world_ = make_world(GetParam(), ranks);
    for (const Algorithm& row : algorithm::table()) {
      check_row(row, ranks);
      if (HasFatalFailure()) return;
    }
  }
  std::printf("%s over %s: %lld cells compared, %lld rows that refuse the ranks or parameters\n",
              GetParam().engine, GetParam().network, static_cast<long long>(cells_),
              static_cast<long long>(not_legal_));
  EXPECT_GT(cells_, 1000);
}

INSTANTIATE_TEST_SUITE_P(All, Cross, testing::ValuesIn(kCombinations), combination_name);

}  // namespace
}  // namespace unisono::test::cross_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) unisono::test::full_sweep |= std::string(argv[i]) == "--full";
  return RUN_ALL_TESTS();
}
