// SPDX-License-Identifier: BSD-3-Clause
// Names, sizes, and which operators go with which types.
#include "arith/type.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>

#include "arith/kernel.hpp"
#include "arith/kernel_table.hpp"

namespace unisono::arith::type_test {
namespace {

template <class Value>
struct CPair {
  Value value;
  std::int32_t index;
};

template <class T>
void expect_layout(Type type) {
  EXPECT_EQ(type_size(type), sizeof(T)) << type_name(type);
  EXPECT_EQ(type_alignment(type), alignof(T)) << type_name(type);
}

TEST(Type, NamesRoundTrip) {
  for (int number = 0; number < kTypeCount; ++number) {
    const Type type = static_cast<Type>(number);
    EXPECT_EQ(type_from_name(type_name(type)), type);
  }
  for (int number = 0; number < kOperatorCount; ++number) {
    const Operator op = static_cast<Operator>(number);
    EXPECT_EQ(operator_from_name(operator_name(op)), op);
  }
  EXPECT_EQ(type_name(Type::bfloat16), "bfloat16");
  EXPECT_EQ(type_name(Type::float64_int32), "float64_int32");
  EXPECT_EQ(operator_name(Operator::logical_xor), "logical_xor");
  EXPECT_EQ(operator_name(Operator::maxloc), "maxloc");
  EXPECT_EQ(type_from_name("float"), std::nullopt);
  EXPECT_EQ(type_from_name(""), std::nullopt);
  EXPECT_EQ(operator_from_name("Sum"), std::nullopt);
}

TEST(Type, SizesAndAlignmentsAreThoseOfTheCTypes) {
  expect_layout<unsigned char>(Type::byte);
  expect_layout<std::int8_t>(Type::int8);
  expect_layout<std::int16_t>(Type::int16);
  expect_layout<std::int32_t>(Type::int32);
  expect_layout<std::int64_t>(Type::int64);
  expect_layout<std::uint8_t>(Type::uint8);
  expect_layout<std::uint16_t>(Type::uint16);
  expect_layout<std::uint32_t>(Type::uint32);
  expect_layout<std::uint64_t>(Type::uint64);
  expect_layout<std::uint16_t>(Type::float16);
  expect_layout<std::uint16_t>(Type::bfloat16);
  expect_layout<float>(Type::float32);
  expect_layout<double>(Type::float64);
  expect_layout<std::complex<float>>(Type::complex64);
  expect_layout<std::complex<double>>(Type::complex128);
  expect_layout<CPair<std::int16_t>>(Type::int16_int32);
  expect_layout<CPair<std::int32_t>>(Type::int32_int32);
  expect_layout<CPair<std::int64_t>>(Type::int64_int32);
  expect_layout<CPair<float>>(Type::float32_int32);
  expect_layout<CPair<double>>(Type::float64_int32);
}

TEST(Type, OperatorsFitTheTypesOfTheContract) {
  // One line per operator, one column per type in the order of their numbers.
  const char* expected[kOperatorCount] = {
      ".11111111111111.....",  // sum
      ".11111111111111.....",  // prod
      ".111111111111.......",  // min
      ".111111111111.......",  // max
      ".11111111...........",  // logical_and
      ".11111111...........",  // logical_or
      ".11111111...........",  // logical_xor
      "111111111...........",  // bitwise_and
      "111111111...........",  // bitwise_or
      "111111111...........",  // bitwise_xor
      "...............11111",  // minloc
      "...............11111",  // maxloc
  };
  for (int op = 0; op < kOperatorCount; ++op) {
    for (int type = 0; type < kTypeCount; ++type) {
      EXPECT_EQ(fits(static_cast<Operator>(op), static_cast<Type>(type)), expected[op][type] == '1')
          << operator_name(static_cast<Operator>(op)) << " " << type_name(static_cast<Type>(type));
    }
  }
}

TEST(Type, KernelsExistExactlyWhereTheOperatorFits) {
  for (int op = -1; op <= kOperatorCount; ++op) {
    for (int type = -1; type <= kTypeCount; ++type) {
      const auto o = static_cast<Operator>(op);
      const auto t = static_cast<Type>(type);
      EXPECT_EQ(find_kernel(o, t) != nullptr, fits(o, t)) << op << " " << type;
      EXPECT_EQ(find_reference_kernel(o, t) != nullptr, fits(o, t)) << op << " " << type;
      if (is_valid(o) && is_valid(t) && !fits(o, t)) {
        EXPECT_EQ(best_kernels().at(o, t), nullptr) << op << " " << type;
      }
    }
  }
}

TEST(Type, NumbersFromOutsideAreChecked) {
  EXPECT_TRUE(is_valid(Type::byte));
  EXPECT_TRUE(is_valid(Type::float64_int32));
  EXPECT_FALSE(is_valid(static_cast<Type>(-1)));
  EXPECT_FALSE(is_valid(static_cast<Type>(kTypeCount)));
  EXPECT_TRUE(is_valid(Operator::maxloc));
  EXPECT_FALSE(is_valid(static_cast<Operator>(-1)));
  EXPECT_FALSE(is_valid(static_cast<Operator>(kOperatorCount)));
  EXPECT_FALSE(fits(static_cast<Operator>(99), Type::int32));
  EXPECT_FALSE(fits(Operator::sum, static_cast<Type>(99)));
}

TEST(TypeDeathTest, AnInvalidTypeHasNoSize) {
  EXPECT_DEATH((void)type_size(static_cast<Type>(kTypeCount)), "unknown datatype");
  EXPECT_DEATH((void)operator_name(static_cast<Operator>(-1)), "unknown operator");
}

}  // namespace
}  // namespace unisono::arith::type_test
