// SPDX-License-Identifier: BSD-3-Clause
// The benchmark's data: right data passes, and any single fault is detected.
#include "bench/measure/pattern.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "arith/kernel.hpp"

namespace unisono::tools::bench::pattern_test {
namespace {

using arith::Operator;
using arith::Type;

constexpr int kRanks = 5;
constexpr std::int64_t kCount = 2500;  // beyond one piece of a row

std::vector<std::byte> filled(const Pattern& pattern, Type type, int rank, std::int64_t phase,
                              std::int64_t count = kCount) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(count) * arith::type_size(type));
  pattern.fill(rank, phase, count, buffer.data());
  return buffer;
}

std::vector<Type> plain_types() {
  std::vector<Type> types;
  types.reserve(arith::kTypeCount);
  for (int i = 0; i < static_cast<int>(Type::int16_int32); ++i) {
    types.push_back(static_cast<Type>(i));
  }
  return types;
}

TEST(Pattern, WhatWasFilledIsRight) {
  for (const Type type : plain_types()) {
    const Pattern pattern(type, Operator::sum, kRanks, 0);
    for (const std::int64_t phase : {0, 1, 60, 61, 1000}) {
      const auto buffer = filled(pattern, type, 3, phase);
      EXPECT_EQ(pattern.wrong(3, phase, kCount, buffer.data()), 0) << arith::type_name(type);
    }
  }
}

TEST(Pattern, EveryReductionInAnyOrderIsRight) {
  for (const Type type : plain_types()) {
    for (int i = 0; i < arith::kOperatorCount; ++i) {
      const auto op = static_cast<Operator>(i);
      if (!arith::fits(op, type)) continue;
      const Pattern pattern(type, op, kRanks, 0);
      auto result = filled(pattern, type, kRanks - 1, 7);
      for (int rank = kRanks - 2; rank >= 0; --rank) {
        const auto next = filled(pattern, type, rank, 7);
        arith::find_kernel(op, type)(result.data(), result.data(), next.data(), kCount, nullptr);
      }
      EXPECT_EQ(pattern.wrong_reduced(7, kCount, result.data()), 0)
          << arith::type_name(type) << " " << arith::operator_name(op);
    }
  }
}

TEST(Pattern, ScansAreOfTheRanksUpToThisOneAndBeforeIt) {
  for (const int own : {1, 2, kRanks - 1}) {
    const Pattern pattern(Type::int32, Operator::sum, kRanks, own);
    auto result = filled(pattern, Type::int32, 0, 5);
    const auto wrong = [&](Reduced reduced) {
      return pattern.wrong_reduced(5, kCount, result.data(), reduced);
    };
    const auto kernel = arith::find_kernel(Operator::sum, Type::int32);
    for (int rank = 1; rank <= own; ++rank) {
      if (rank == own) {
        EXPECT_EQ(wrong(Reduced::before), 0);
      }
      const auto next = filled(pattern, Type::int32, rank, 5);
      kernel(result.data(), result.data(), next.data(), kCount, nullptr);
    }
    EXPECT_EQ(wrong(Reduced::upto), 0);
    EXPECT_GT(wrong(Reduced::before), 0);
  }
}

TEST(Pattern, BlocksDiffer) {
  const Pattern pattern(Type::float32, Operator::sum, kRanks, 0);
  const auto buffer = filled(pattern, Type::float32, 1, Pattern::phase_of(2, 9));
  EXPECT_EQ(pattern.wrong(1, Pattern::phase_of(2, 9), kCount, buffer.data()), 0);
  EXPECT_GT(pattern.wrong(1, Pattern::phase_of(1, 9), kCount, buffer.data()), kCount / 2);
  EXPECT_GT(pattern.wrong(1, 9, kCount, buffer.data()), kCount / 2);
}

TEST(Pattern, OneWrongByteIsOneWrongElement) {
  const Pattern pattern(Type::float32, Operator::sum, kRanks, 0);
  auto buffer = filled(pattern, Type::float32, 0, 0);
  for (const std::size_t index : {std::size_t{0}, std::size_t{4000}, buffer.size() - 1}) {
    auto broken = buffer;
    broken[index] ^= std::byte{1};
    EXPECT_EQ(pattern.wrong(0, 0, kCount, broken.data()), 1) << index;
  }
}

TEST(Pattern, AnotherRankOrIterationIsWrong) {
  const Pattern pattern(Type::float32, Operator::sum, kRanks, 0);
  const auto buffer = filled(pattern, Type::float32, 2, 10);
  EXPECT_GT(pattern.wrong(1, 10, kCount, buffer.data()), kCount / 2);
  EXPECT_GT(pattern.wrong(2, 11, kCount, buffer.data()), kCount / 2);
  EXPECT_GT(pattern.wrong_reduced(10, kCount, buffer.data()), kCount / 2);
}

TEST(Pattern, AMissingOrDoubledContributionIsWrong) {
  for (const Type type : plain_types()) {
    if (!arith::fits(Operator::sum, type)) continue;
    const Pattern pattern(type, Operator::sum, kRanks, 0);
    const arith::Kernel add = arith::find_kernel(Operator::sum, type);
    auto result = filled(pattern, type, 0, 0);
    for (int rank = 1; rank < kRanks - 1; ++rank) {
      add(result.data(), result.data(), filled(pattern, type, rank, 0).data(), kCount, nullptr);
    }
    EXPECT_GT(pattern.wrong_reduced(0, kCount, result.data()), 0) << arith::type_name(type);
    const auto last = filled(pattern, type, kRanks - 1, 0);
    for (int times = 0; times < 2; ++times) {
      add(result.data(), result.data(), last.data(), kCount, nullptr);
    }
    EXPECT_GT(pattern.wrong_reduced(0, kCount, result.data()), 0) << arith::type_name(type);
  }
}

}  // namespace
}  // namespace unisono::tools::bench::pattern_test
