// SPDX-License-Identifier: BSD-3-Clause
// base/text: sizes, times, integers, and near names.
#include "base/text.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "base/clock.hpp"

namespace unisono::base::text_test {
namespace {

TEST(Text, IntegersTakeTheWholeText) {
  EXPECT_EQ(parse_integer("42"), 42);
  EXPECT_EQ(parse_integer("-7"), -7);
  EXPECT_EQ(parse_integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  for (const char* wrong : {"", " 1", "1 ", "0x10", "1.5", "9223372036854775808", "+1"}) {
    EXPECT_FALSE(parse_integer(wrong)) << wrong;
  }
}

TEST(Text, Sizes) {
  EXPECT_EQ(parse_size("0"), 0);
  EXPECT_EQ(parse_size("4096"), 4096);
  EXPECT_EQ(parse_size("4K"), 4096);
  EXPECT_EQ(parse_size("4k"), 4096);
  EXPECT_EQ(parse_size("1M"), 1 << 20);
  EXPECT_EQ(parse_size("16GiB"), std::int64_t{16} << 30);
  EXPECT_EQ(parse_size("2TB"), std::int64_t{2} << 40);
  EXPECT_EQ(parse_size("1.5K"), 1536);
  for (const char* wrong :
       {"", "K", "-1", "1.5", "4 K", "4KK", "4X", "inf", "nan", "9999999999T", "1e3K"}) {
    EXPECT_FALSE(parse_size(wrong)) << wrong;
  }
}

TEST(Text, Times) {
  EXPECT_EQ(parse_time_ns("0"), 0);
  EXPECT_EQ(parse_time_ns("500ms"), 500 * kMillisecond);
  EXPECT_EQ(parse_time_ns("2s"), 2 * kSecond);
  EXPECT_EQ(parse_time_ns("1.5s"), 1500 * kMillisecond);
  EXPECT_EQ(parse_time_ns("3us"), 3000);
  EXPECT_EQ(parse_time_ns("17ns"), 17);
  EXPECT_EQ(parse_time_ns("2min"), 120 * kSecond);
  EXPECT_EQ(parse_time_ns("1h"), 3600 * kSecond);
  for (const char* wrong : {"", "5", "s", "-1s", "2 s", "1m", "1sec", "infs", "99999999999h"}) {
    EXPECT_FALSE(parse_time_ns(wrong)) << wrong;
  }
}

TEST(Text, FormatsReadBack) {
  EXPECT_EQ(format_size(65536), "64K");
  EXPECT_EQ(format_size(65537), "65537");
  EXPECT_EQ(format_size(0), "0");
  EXPECT_EQ(format_time_ns(30 * kSecond), "30s");
  EXPECT_EQ(format_time_ns(1500 * kMillisecond), "1500ms");
  EXPECT_EQ(format_time_ns(0), "0");
  for (const std::int64_t value : {1L, 1023L, 1024L, 1L << 20, 3L << 30, 5L << 40, 1000000007L}) {
    EXPECT_EQ(parse_size(format_size(value)), value);
    EXPECT_EQ(parse_time_ns(format_time_ns(value)), value);
  }
}

TEST(Text, NearestName) {
  constexpr std::array<std::string_view, 3> kNames{"ENGINE", "START_TIMEOUT", "LOG"};
  EXPECT_EQ(nearest_name("ENGIN", kNames), "ENGINE");
  EXPECT_EQ(nearest_name("STRAT_TIMEOUT", kNames), "START_TIMEOUT");
  EXPECT_EQ(nearest_name("LOGG", kNames), "LOG");
  EXPECT_EQ(nearest_name("OLG", kNames), "LOG");  // a swap of neighbours is one edit
  EXPECT_EQ(nearest_name("GOL", kNames), "");     // of others, two
  EXPECT_EQ(nearest_name("ENIGEN", kNames), "ENGINE");
  EXPECT_EQ(nearest_name("SOMETHING_ELSE", kNames), "");
  EXPECT_EQ(nearest_name("", kNames), "");
}

}  // namespace
}  // namespace unisono::base::text_test
