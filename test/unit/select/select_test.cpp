// SPDX-License-Identifier: BSD-3-Clause
#include "select/select.hpp"

#include <gtest/gtest.h>

namespace unisono::select {
namespace {

using schedule::Collective;
using schedule::Shape;

// choose() stops the process if a rule names an unknown or illegal algorithm, so walking the
// shapes is the test; what it picks has to build, too.
TEST(Choose, PicksSomethingLegalForEveryShape) {
  int picks = 0;
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    for (int ranks = 1; ranks <= 70; ++ranks) {
      for (const std::int64_t count : {0, 1, 100, 10'000, 10'000'000}) {
        for (const bool ordered : {false, true}) {
          for (const bool oversubscribed : {false, true}) {
            for (const bool multicast : {false, true}) {
              const auto collective = static_cast<Collective>(c);
              const Shape shape{collective, ranks, schedule::is_rooted(collective) ? ranks / 2 : 0,
                                collective == Collective::barrier ? 0 : count,
                                ordered && schedule::is_reduction(collective)};
              const Choice choice = choose(
                  shape,
                  {.element_bytes = 8, .oversubscribed = oversubscribed, .multicast = multicast});
              ASSERT_TRUE(algorithm::build(*choice.algorithm, shape, choice.parameters, 0).ok());
              ++picks;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(picks, schedule::kCollectiveCount * 70 * 5 * 8);
}

TEST(Choose, OneRankCombinesForAllWhereRanksOutnumberCores) {
  const Shape shape{Collective::allreduce, 8, 0, 1, false};
  EXPECT_EQ(choose(shape, {.element_bytes = 8, .oversubscribed = true, .multicast = true})
                .algorithm->name,
            "gather-release");
  EXPECT_EQ(choose(shape, {.element_bytes = 8, .oversubscribed = false, .multicast = true})
                .algorithm->name,
            "pairwise");
}

TEST(Choose, AnOperatorThatDoesNotCommuteGetsAnAlgorithmThatKeepsOrder) {
  for (const std::int64_t count : {1, 1'000'000}) {
    const Shape shape{Collective::allreduce, 6, 0, count, true};
    EXPECT_TRUE(choose(shape, {.element_bytes = 8}).algorithm->keeps_order) << count;
  }
}

}  // namespace
}  // namespace unisono::select
