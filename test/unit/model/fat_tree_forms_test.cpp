// SPDX-License-Identifier: BSD-3-Clause
// Equations 1 to 10 of Kumar and Kale, with numbers worked by hand, and what they say of them.
#include "model/closed_form/fat_tree.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/model/shipped.hpp"

namespace unisono::model::fat_tree::fat_tree_forms_test {
namespace {

constexpr Parameters kRound{.alpha = 1000,
                            .beta = 10,
                            .beta_em = 4,
                            .gamma = 2,
                            .delta = 3,
                            .latency = 500,
                            .contention = 1};

TEST(FatTree, EquationsByHand) {
  const Parameters& p = kRound;
  EXPECT_DOUBLE_EQ(point_to_point(p, 100), 1000 + 100 * 11 + 500);
  EXPECT_DOUBLE_EQ(direct(p, 16, 100), 15 * 1000 + 15 * 100 * 11 + 500);
  EXPECT_DOUBLE_EQ(mesh(p, 16, 100), 2 * 4 * 1000 + 16 * 100 * (4 + 2 + 1) + 4 * 100 * 3);
  EXPECT_DOUBLE_EQ(hypercube(p, 16, 100), 4 * 1000 + 15 * 100 * (10 + 2 + 1));
  EXPECT_DOUBLE_EQ(hypercube_with_holes(p, 16, 100), 4 * 1000 + 15 * 100 * (10 + 1));
  EXPECT_DOUBLE_EQ(hypercube_with_holes(p, 12, 100),
                   (std::log2(12) + 1) * 1000 + 2 * 11 * 100 * (10 + 1));
  EXPECT_DOUBLE_EQ(hybrid(p, 16, 3, 100), 4 * 1000 + 2 * 100 * (10 + 2 + 3) + 14 * 100 * 4);
  EXPECT_DOUBLE_EQ(ring(p, 16, 100), 15 * (1000 + 100 * 10) + 500);
  EXPECT_DOUBLE_EQ(prefix_send(p, 16, 100), 15 * (1000 + 100 * 4) + 100 * 3 + 500);
  EXPECT_DOUBLE_EQ(kprefix(p, 16, 8, 100), 15 * (1000 + 100 * 4) + 2 * 100 * 3 + 500);
  EXPECT_DOUBLE_EQ(kshift(p, 12, 8, 100), 11 * (1000 + 100 * 4) + 1.5 * 100 * 3 + 500);
}

TEST(FatTree, ParametersOfLemieux) {
  const Parameters p = parameters_of(remote_path(shipped("lemieux"), Engine::any, 1));
  EXPECT_DOUBLE_EQ(p.alpha, 7400);
  EXPECT_DOUBLE_EQ(p.beta, 7.5);
  EXPECT_DOUBLE_EQ(p.beta_em, 3.13);
  EXPECT_DOUBLE_EQ(p.delta, 3.13);
  const Parameters plain = parameters_of(remote_path(shipped("infiniband-8"), Engine::any, 1));
  EXPECT_EQ(plain.beta_em, plain.beta);
  EXPECT_EQ(plain.delta, 0);
}

// Section 2: 7.5 and 3.13 ns/byte correspond to effective bandwidths (both directions) of 256 MB/s
// and 610 MB/s, as printed rounded. Section 4.6: above 40 KB kPrefix is twice as fast as MPI, to
// which the ring, from main memory, is very close.
TEST(FatTree, WhatThePaperSaysOfLemieux) {
  const Parameters p = parameters_of(remote_path(shipped("lemieux"), Engine::any, 1));
  EXPECT_NEAR(2e3 / p.beta, 256, 0.05 * 256);
  EXPECT_NEAR(2e3 / p.beta_em, 610, 0.05 * 610);
  for (const int ranks : {64, 128, 256}) {
    const std::int64_t large = 256 * 1024;
    EXPECT_GT(ring(p, ranks, large) / kprefix(p, ranks, 8, large), 1.9);
    // Combining is better than direct strategies below 8 KB: section 4.6.
    EXPECT_LT(hybrid(p, ranks, 3, 1024), kprefix(p, ranks, 8, 1024));
    EXPECT_LT(kprefix(p, ranks, 8, large), prefix_send(p, ranks, large) * 1.2);
  }
}

}  // namespace
}  // namespace unisono::model::fat_tree::fat_tree_forms_test
