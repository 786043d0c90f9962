// SPDX-License-Identifier: BSD-3-Clause
// call_record.hpp: records that their owners may be writing.
#include "engine/call_record.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/host_operation.hpp"
#include "engine/operation.hpp"

namespace unisono::engine::call_record_test {
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

// Rank 0's queue of two ranks.
class CallRecordLane : public testing::Test {
 protected:
  static constexpr plan::ReceiveGeometry kGeometry{
      .ranks = 2, .slot_indexes = 4, .lines = 4, .data_bytes = 64};

  static std::byte* aligned(std::vector<std::byte>& bytes) {
    void* start = bytes.data();
    std::size_t room = bytes.size();
    return static_cast<std::byte*>(std::align(64, 1, start, room));
  }

  std::vector<std::byte> control_ =
      std::vector<std::byte>(static_cast<std::size_t>(size_queue_control_bytes(kGeometry)) + 64);
  std::vector<std::byte> receive_buffers_ =
      std::vector<std::byte>(static_cast<std::size_t>(kGeometry.total_bytes()) + 64);
  SizeQueue size_queue{kGeometry, 0, aligned(control_), aligned(receive_buffers_), 1};
};

// Others that find a difference name both calls.
TEST_F(CallRecordLane, OfACallIsThereBeforeItsFirstStepUnlessItWaitsForRoom) {
  plan::Plan plan;
  plan.digest = 42;
  const std::shared_ptr<plan::Plan::Part[]> parts = std::make_shared<plan::Plan::Part[]>(1);
  parts[0] = {1, std::vector<plan::Program>(2)};
  plan.parts = parts;
  std::vector<HostOperation> operations(kGeometry.slot_indexes + 1);
  for (HostOperation& operation : operations) {
    operation.start(plan, size_queue, {.index = 7, .history = 1});
    const auto record = read_record(size_queue.record(operation.sequence(), 0));
    ASSERT_TRUE(record);
    if (&operation != &operations.back()) {
      EXPECT_TRUE(operation.entered());
      EXPECT_EQ(record->sequence, operation.sequence());
      EXPECT_EQ(record->digest, 42U);
    } else {
      EXPECT_FALSE(operation.entered());
      EXPECT_EQ(record->sequence, operations.front().sequence()) << "nobody has completed that";
    }
  }
}

TEST_F(CallRecordLane, ThoseOfARankAreOnesThatAreStillThere) {
  EXPECT_TRUE(read_records(size_queue, 1).empty());
  size_queue.record(2, 1).index = 5;
  size_queue.record(2, 1).sequence = 2;
  size_queue.record(3, 0).sequence = 3;
  const std::vector<RecordCopy> records = read_records(size_queue, 1);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records.front().index, 5U);
}

}  // namespace
}  // namespace unisono::engine::call_record_test
