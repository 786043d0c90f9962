// SPDX-License-Identifier: BSD-3-Clause
#include "arguments/number_list.hpp"

#include <gtest/gtest.h>

namespace unisono::tools::number_list_test {
namespace {

constexpr std::int64_t kHigh = std::int64_t{1} << 40;

std::vector<std::int64_t> doubling(std::string_view text) {
  const auto numbers = parse_number_list(text, Step::doubling, 0, kHigh);
  EXPECT_TRUE(numbers.ok()) << text;
  return numbers.ok() ? *numbers : std::vector<std::int64_t>{};
}

std::string error(std::string_view text) {
  const auto numbers = parse_number_list(text, Step::doubling, 1, 1 << 20);
  EXPECT_FALSE(numbers.ok()) << text;
  return numbers.ok() ? "" : numbers.error().message;
}

TEST(NumberList, RangesDouble) {
  EXPECT_EQ(doubling("8:64"), (std::vector<std::int64_t>{8, 16, 32, 64}));
  EXPECT_EQ(doubling("512:4K"), (std::vector<std::int64_t>{512, 1024, 2048, 4096}));
  EXPECT_EQ(doubling("7"), (std::vector<std::int64_t>{7}));
  EXPECT_EQ(doubling("4:4"), (std::vector<std::int64_t>{4}));
}

TEST(NumberList, ARangeEndsWithItsLastNumber) {
  EXPECT_EQ(doubling("3:10"), (std::vector<std::int64_t>{3, 6, 10}));
}

TEST(NumberList, PiecesKeepTheirOrder) {
  EXPECT_EQ(doubling("0,64K,8:16"), (std::vector<std::int64_t>{0, 65536, 8, 16}));
}

TEST(NumberList, CountsByOne) {
  const auto numbers = parse_number_list("1:3,64", Step::one, 1, 100);
  ASSERT_TRUE(numbers.ok());
  EXPECT_EQ(*numbers, (std::vector<std::int64_t>{1, 2, 3, 64}));
}

TEST(NumberList, ErrorsNameThePiece) {
  EXPECT_EQ(error("8,4:2"), "'4:2' runs backwards: write FROM:TO with FROM <= TO");
  EXPECT_EQ(error("8,0"), "'0' is outside 1 ... 1048576");
  EXPECT_EQ(error("2M"), "'2M' is outside 1 ... 1048576");
  for (const char* text : {"", "x", "8:", ":8", "8,,9", "8:9:10", "-1", "8Q"}) {
    EXPECT_NE(error(text).find("is not a number or a range"), std::string::npos) << text;
  }
}

TEST(NumberList, NothingDoublesFromZero) {
  const auto numbers = parse_number_list("0:8", Step::doubling, 0, kHigh);
  ASSERT_FALSE(numbers.ok());
  EXPECT_NE(numbers.error().message.find("cannot double from 0"), std::string::npos);
}

TEST(NumberList, IsBounded) {
  const auto numbers = parse_number_list("1:1000000000", Step::one, 0, kHigh);
  ASSERT_FALSE(numbers.ok());
  EXPECT_NE(numbers.error().message.find("more than 100000 numbers"), std::string::npos);
}

}  // namespace
}  // namespace unisono::tools::number_list_test
