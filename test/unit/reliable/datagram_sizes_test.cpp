// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/path/datagram_sizes.hpp"

#include <gtest/gtest.h>

#include "unit/reliable/parts.hpp"

namespace unisono::reliable::datagram_sizes_test {
namespace {

TEST(DatagramSizes, AreFullUntilAPathIsFoundToBeNarrow) {
  Parts parts(3);
  DatagramSizes& sizes = parts.sizes;
  const std::size_t full = DatagramSizes::full_payload(parts.datagrams->limits());
  EXPECT_EQ(full % 8, 0U);
  EXPECT_EQ(sizes.most_payload(1), full);
  EXPECT_EQ(sizes.most_payload(transport::kGroup), full);
  EXPECT_FALSE(sizes.is_too_long(1, full));
  EXPECT_FALSE(sizes.is_too_long(transport::kGroup, full));
}

TEST(DatagramSizes, TheGroupGetsShorterOnly) {
  Parts parts(3);
  DatagramSizes& sizes = parts.sizes;
  const std::size_t full = DatagramSizes::full_payload(parts.datagrams->limits());
  sizes.narrow_group(parts.datagrams->limits().max_payload);
  EXPECT_TRUE(parts.narrowed.empty()) << "as long as the interface's";
  sizes.narrow_group(1232);
  EXPECT_EQ(sizes.most_bytes(transport::kGroup), 1232U);
  EXPECT_EQ(sizes.most_payload(transport::kGroup), (1232 - wire::kHeaderBytes) / 8 * 8);
  EXPECT_TRUE(sizes.is_too_long(transport::kGroup, full));
  EXPECT_FALSE(sizes.is_too_long(1, full)) << "the paths to single ranks are another matter";
  sizes.narrow_group(1300);
  EXPECT_EQ(sizes.most_bytes(transport::kGroup), 1232U);
  sizes.narrow_group(0);
  EXPECT_EQ(sizes.most_bytes(transport::kGroup), Paths::kSteps.back())
      << "every path carries the shortest";
  const std::vector<std::pair<int, std::size_t>> expected{
      {transport::kGroup, 1232}, {transport::kGroup, Paths::kSteps.back()}};
  EXPECT_EQ(parts.narrowed, expected);
}

TEST(DatagramSizes, WithoutMulticastTheGroupHasNone) {
  Parts parts(3, 4, false);
  parts.sizes.narrow_group(508);
  EXPECT_TRUE(parts.narrowed.empty());
}

}  // namespace
}  // namespace unisono::reliable::datagram_sizes_test
