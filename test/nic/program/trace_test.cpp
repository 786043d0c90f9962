// SPDX-License-Identifier: BSD-3-Clause
// Tracing in the program. There is a record for each sampled packet, with its original contents and
// its final counter, and none without a listener. By the trial run.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "nic/harness/trial_device.hpp"

namespace unisono::nic::test::trace_test {
namespace {

constexpr std::uint32_t kSum = UNISONO_NIC_SUM_INT64;
constexpr auto kXdpDrop = static_cast<std::int8_t>(kDrop);
constexpr auto kXdpSend = static_cast<std::int8_t>(kSend);

class Trace : public TrialDevice {
 protected:
  void TearDown() override {
    if (device != nullptr) {
      EXPECT_TRUE(device->trace(0).ok());
    }
    TrialDevice::TearDown();
  }
  static std::vector<unisono_nic_trace> records() {
    std::vector<unisono_nic_trace> all;
    EXPECT_TRUE(device
                    ->read_trace([&](const unisono_nic_trace& record) {
                      all.push_back(record);
                      return true;
                    })
                    .ok());
    return all;
  }
  static void start(std::uint32_t every) {
    const base::Status started = device->trace(every);
    ASSERT_TRUE(started.ok()) << started.error().message;
    EXPECT_GE(device->trace_descriptor(), 0);
  }
  static Frame doorbell_of(const unisono_nic_row& row, std::uint64_t sequence) {
    return from_process(row, UNISONO_NIC_DOORBELL, sequence, 2);
  }
};

void expect_record(const unisono_nic_trace& record, unisono_nic_entry entry, std::int8_t verdict,
                   unisono_nic_counter reason) {
  EXPECT_EQ(record.entry, entry);
  EXPECT_EQ(record.verdict, verdict);
  EXPECT_EQ(record.reason, 1 + reason)
      << counter_name(static_cast<unisono_nic_counter>(record.reason - 1));
  EXPECT_EQ(record.lost, 0U);
}

TEST_F(Trace, SaysWhatAPacketWasAndWhatBecameOfIt) {
  const unisono_nic_row row = add(inner_row());
  const Frame first = frame_of(row, give(row, 0, 0, kSum), {1, 10});
  const Frame last = frame_of(row, give(row, 1, 0, kSum), {2, 20});
  Frame forged = first;
  forged[kPayload] ^= std::byte{1};
  start(1);
  const auto before_ns = static_cast<std::uint64_t>(base::now_ns());
  run(Entry::receive, forged);
  run(Entry::receive, first);
  run(Entry::receive, first);
  run(Entry::leave, doorbell_of(row, 0));
  post(row, 0, kSum, {100, 7});
  run(Entry::receive, last);
  const auto seen = records();
  ASSERT_EQ(seen.size(), 5U);
  expect_record(seen[0], UNISONO_NIC_RECEIVE, kXdpDrop, UNISONO_NIC_BAD_TAG);
  expect_record(seen[1], UNISONO_NIC_RECEIVE, kXdpDrop, UNISONO_NIC_TAKEN_IN);
  expect_record(seen[2], UNISONO_NIC_RECEIVE, kXdpDrop, UNISONO_NIC_STALE);
  expect_record(seen[3], UNISONO_NIC_LEAVE, kTcDrop, UNISONO_NIC_STRAY_DOORBELL);
  expect_record(seen[4], UNISONO_NIC_RECEIVE, kXdpSend, UNISONO_NIC_SENT_UP);
  EXPECT_GE(seen[0].time_ns, before_ns);
  EXPECT_LE(seen[4].time_ns, static_cast<std::uint64_t>(base::now_ns()));
  EXPECT_EQ(seen[4].bytes, last.size());
  EXPECT_EQ(seen[4].packet.sender, 4U) << "not what the frame became";
  const unisono_packet packet = packet_in(last);
  EXPECT_EQ(std::memcmp(&seen[4].packet, &packet, sizeof packet), 0);
}

// tc interprets -1 as "go on".
TEST_F(Trace, ADoorbellThatGoesOnIsPassed) {
  const unisono_nic_row row = add(inner_row());
  run(Entry::receive, frame_of(row, give(row, 0, 0, kSum), {1, 10}));
  run(Entry::receive, frame_of(row, give(row, 1, 0, kSum), {2, 20}));
  post(row, 0, kSum, {100, 7});
  start(1);
  EXPECT_EQ(run(Entry::leave, doorbell_of(row, 0)).verdict, kTcNext);
  const auto seen = records();
  ASSERT_EQ(seen.size(), 1U);
  expect_record(seen[0], UNISONO_NIC_LEAVE, -1, UNISONO_NIC_SENT_UP);
  EXPECT_EQ(seen[0].packet.kind, UNISONO_NIC_DOORBELL);
}

TEST_F(Trace, WhatPassesThroughIsNotShown) {
  const unisono_nic_row row = add(inner_row());
  start(1);
  const Frame give_frame = frame_of(row, give(row, 0, 0, kSum), {1, 10});
  run(Entry::leave, give_frame);
  run(Entry::spread, give_frame);
  Frame put = give_frame;
  put[kPacket + offsetof(unisono_packet, kind)] = std::byte{UNISONO_PACKET_PUT};
  run(Entry::receive, put);
  EXPECT_TRUE(records().empty());
}

TEST_F(Trace, SamplesOneOfSoMany) {
  const unisono_nic_row row = add(inner_row());
  start(10);
  const Frame frame = frame_of(row, give(row, 0, 0, kSum), {1, 10});
  constexpr std::size_t kFrames = 1000;
  for (std::size_t i = 0; i < kFrames; ++i) run(Entry::receive, frame);
  // Each processor counts for itself.
  const std::size_t processors = std::thread::hardware_concurrency();
  EXPECT_NEAR(static_cast<double>(records().size()), kFrames / 10.0,
              static_cast<double>(processors));
}

TEST_F(Trace, NobodyTracesNothingIsRecorded) {
  const unisono_nic_row row = add(inner_row());
  const Frame frame = frame_of(row, give(row, 0, 0, kSum), {1, 10});
  EXPECT_EQ(device->trace_descriptor(), -1);
  run(Entry::receive, frame);
  start(1);
  EXPECT_TRUE(records().empty());
  run(Entry::receive, frame);
  ASSERT_TRUE(device->trace(0).ok());
  run(Entry::receive, frame);
  EXPECT_EQ(device->trace_descriptor(), -1);
  start(1);
  EXPECT_TRUE(records().empty()) << "what was not read is gone";
}

// More than the ring buffer holds.
TEST_F(Trace, WhatFindsNoRoomIsCounted) {
  const unisono_nic_row row = add(inner_row());
  start(1);
  const Frame frame = frame_of(row, give(row, 0, 0, kSum), {1, 10});
  constexpr std::size_t kFrames = 10'000;
  for (std::size_t i = 0; i < kFrames; ++i) run(Entry::receive, frame);
  const std::size_t kept = records().size();
  EXPECT_GT(kept, 1000U);
  ASSERT_LT(kept, kFrames);
  // The processors that ran the others report the loss with their next record.
  std::uint64_t lost = 0;
  while (kept + lost < kFrames) {
    run(Entry::receive, frame);
    for (const unisono_nic_trace& record : records()) lost += record.lost;
  }
  EXPECT_EQ(kept + lost, kFrames);
}

}  // namespace
}  // namespace unisono::nic::test::trace_test
