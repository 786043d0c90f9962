// SPDX-License-Identifier: BSD-3-Clause
// The tests' own arithmetic. It stores and loads exact values. Its naive reference and the
// library's reference kernels, written independently, agree bit for bit on the samples.
#include <gtest/gtest.h>

#include <vector>

#include "arith/kernel.hpp"
#include "arith/type.hpp"
#include "harness/buffer.hpp"
#include "harness/elements.hpp"

namespace unisono::harness::harness_test {
namespace {

TEST(Elements, HalfPrecisionHasTheBitsOfIeee) {
  EXPECT_EQ(half_bits(0), 0x0000);
  EXPECT_EQ(half_bits(1), 0x3c00);
  EXPECT_EQ(half_bits(-2), 0xc000);
  EXPECT_EQ(half_bits(3), 0x4200);
  EXPECT_EQ(half_bits(1023), 0x63fe);
  for (std::int64_t value = -2048; value <= 2048; ++value) {
    ASSERT_EQ(to_integer(half_value(half_bits(value))), value);
  }
  EXPECT_EQ(to_integer(half_value(0x3800)), kNoInteger);  // a half
  EXPECT_EQ(to_integer(half_value(0x7c00)), kNoInteger);  // infinity
}

TEST(Elements, SamplesSurviveBeingStored) {
  for (const TypedOp pair : all_typed_ops()) {
    for (std::int64_t i = 0; i < 200; ++i) {
      const Element element = sample(pair, 5, i);
      ASSERT_EQ(narrowed(pair.type, element), element) << name_of(pair);
    }
  }
}

TEST(Elements, FitAsTheLibrarySays) {
  for (unisono_type_t type = 0; type < kTypes; ++type) {
    EXPECT_EQ(size_of(type), arith::type_size(static_cast<arith::Type>(type)));
    for (unisono_op_t op = 0; op < kOperators; ++op) {
      EXPECT_EQ(fits(op, type),
                arith::fits(static_cast<arith::Operator>(op), static_cast<arith::Type>(type)))
          << name_of({type, op});
    }
  }
}

TEST(Elements, ReferenceAgreesWithTheLibrarysReference) {
  constexpr std::int64_t kCount = 300;
  constexpr int kRanks = 33;
  for (const TypedOp pair : all_typed_ops()) {
    SCOPED_TRACE(name_of(pair));
    const auto kernel = arith::find_reference_kernel(static_cast<arith::Operator>(pair.op),
                                                     static_cast<arith::Type>(pair.type));
    ASSERT_NE(kernel, nullptr);
    Buffer sum(pair.type, kCount);
    sum.fill(pair, 0, 0, kCount);
    for (int rank = 1; rank < kRanks; ++rank) {
      Buffer next(pair.type, kCount);
      next.fill(pair, rank, 0, kCount);
      kernel(sum.data(), sum.data(), next.data(), kCount, nullptr);
    }
    EXPECT_TRUE(sum.holds(reference(pair, kRanks, kCount), 0, kCount));
    EXPECT_TRUE(sum.guards_intact());
  }
}

}  // namespace
}  // namespace unisono::harness::harness_test
