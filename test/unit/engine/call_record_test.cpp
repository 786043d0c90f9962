// SPDX-License-Identifier: BSD-3-Clause
// call_record.hpp: records that their owners may be writing.
#include "engine/call_record.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace unisono::engine {
namespace {

TEST(CallRecord, IsReadWholeOrNotAtAll) {
  CallRecord record;
  EXPECT_FALSE(read_record(record)) << "nothing has been written";
  record.index = 7;
  record.count = 100;
  record.digest = 42;
  record.sequence = 9;
  const auto copy = read_record(record);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->sequence, 9U);
  EXPECT_EQ(copy->index, 7U);
  EXPECT_EQ(copy->count, 100);
  EXPECT_EQ(copy->digest, 42U);
  record.sequence = 0;
  EXPECT_FALSE(read_record(record)) << "its owner writes it anew";
}

TEST(CallRecord, ThoseOfARankAreOnesThatAreStillThere) {
  const plan::WindowGeometry geometry{.ranks = 2, .channels = 4, .lines = 4, .data_bytes = 64};
  std::vector<std::byte> control(static_cast<std::size_t>(lane_control_bytes(geometry)) + 64);
  std::vector<std::byte> windows(static_cast<std::size_t>(geometry.windows_bytes()) + 64);
  const auto aligned = [](std::vector<std::byte>& bytes) {
    void* start = bytes.data();
    std::size_t room = bytes.size();
    return static_cast<std::byte*>(std::align(64, 1, start, room));
  };
  const Lane lane(geometry, 0, aligned(control), aligned(windows), 1);
  EXPECT_TRUE(read_records(lane, 1).empty());
  lane.record(2, 1).index = 5;
  lane.record(2, 1).sequence = 2;
  lane.record(3, 0).sequence = 3;
  const std::vector<RecordCopy> records = read_records(lane, 1);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records.front().index, 5U);
}

}  // namespace
}  // namespace unisono::engine
