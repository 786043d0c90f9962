// SPDX-License-Identifier: BSD-3-Clause
// What `unisono nic trace` prints, of packets that are as they should be and of any bytes.
#include "nic/nic_trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/prng.hpp"
#include "nic/program/tables.h"

namespace unisono::tools::test::nic_trace_test {
namespace {

unisono_nic_trace contribution() {
  unisono_nic_trace record = {};
  record.time_ns = 5'000;
  record.bytes = 122;
  record.entry = UNISONO_NIC_RECEIVE;
  record.verdict = 1;
  record.reason = 1 + UNISONO_NIC_TAKEN_IN;
  record.packet.kind = UNISONO_NIC_GIVE;
  record.packet.job = 0x63;
  record.packet.communicator = 1;
  record.packet.sequence = 17;
  record.packet.sender = record.packet.origin = 2;
  record.packet.position = 3;
  record.packet.length = 8;
  return record;
}

// 09:15:02, and a year.
constexpr std::int64_t kOffset = ((365LL * 24 + 9) * 3600 + 15 * 60 + 2) * 1'000'000'000;

TEST(NicTrace, AContribution) {
  EXPECT_EQ(trace_line(contribution(), "u0", kOffset),
            "09:15:02.000005Z u0 in     drop taken_in   give       group 00000063/1 operation 17 "
            "rank 2 to 0 origin 2 hop 0 contribution 3 vector 8 frame 122");
}

TEST(NicTrace, VerdictsOfBothHooksAndKinds) {
  unisono_nic_trace record = contribution();
  record.verdict = 3;
  record.reason = 1 + UNISONO_NIC_SENT_DOWN;
  EXPECT_NE(trace_line(record, "u0", 0).find(" in     send sent_down "), std::string::npos);
  record.verdict = 2;
  EXPECT_NE(trace_line(record, "u0", 0).find(" in     pass sent_down "), std::string::npos);
  record.entry = UNISONO_NIC_LEAVE;
  record.packet.kind = UNISONO_NIC_DOORBELL;
  record.packet.target = UNISONO_PACKET_GROUP;
  record.reason = 1 + UNISONO_NIC_STRAY_DOORBELL;
  const std::string doorbell = trace_line(record, "u0", 0);
  EXPECT_NE(doorbell.find(" out    drop stray_doorbell doorbell   "), std::string::npos)
      << doorbell;
  EXPECT_NE(doorbell.find(" to all "), std::string::npos) << doorbell;
  record.entry = UNISONO_NIC_SPREAD;
  record.packet.kind = UNISONO_NIC_QUERY;
  record.verdict = -1;
  record.reason = 0;
  EXPECT_NE(trace_line(record, "u0", 0).find(" spread pass -          query "), std::string::npos);
}

TEST(NicTrace, AnyBytesAreOneLine) {
  base::Prng random(7);
  for (int i = 0; i < 10'000; ++i) {
    unisono_nic_trace record = {};
    auto* const bytes = reinterpret_cast<unsigned char*>(&record);
    for (std::size_t at = 0; at < sizeof record; ++at) {
      bytes[at] = static_cast<unsigned char>(random.next());
    }
    const std::string line =
        trace_line(record, "u0", static_cast<std::int64_t>(random.next() >> 1));
    ASSERT_TRUE(std::ranges::all_of(line, [](unsigned char c) { return std::isprint(c) != 0; }))
        << line;
    ASSERT_LT(line.size(), 300U);
  }
}

}  // namespace
}  // namespace unisono::tools::test::nic_trace_test
