// SPDX-License-Identifier: BSD-3-Clause
// Messages between a process and unisonod: a sent message is decoded unchanged, and all other bytes
// are refused.
#include "nic/service/protocol.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "base/prng.hpp"

namespace unisono::nic::test::service_protocol_test {
namespace {

ServiceStatus some_status() {
  ServiceStatus status;
  status.served.interface = "eth0";
  status.served.driver = "mlx5_core";
  status.served.native = 1;
  status.served.mask = 0x00FFFFFF;
  status.process = 17;
  status.groups = 3;
  status.counters[UNISONO_NIC_SENT_UP] = 1234567890123;
  status.retained_bytes = 4096;
  status.service = {9, 1, 30, 2, 3, 5, 4};
  status.own_groups = {{1000, 4242, 7, 1, 0, 2, 8192}, {1000, 4243, 7, 2, 1, 0, 4096}};
  return status;
}

Records some_records() {
  Records records;
  records.lost = 5;
  records.records.resize(kMostRecords);
  records.records[1].packet.sequence = 77;
  return records;
}

// One of each type.
std::vector<Message> all_messages() {
  Join join;
  join.row.rank = 5;
  join.row.children = 2;
  join.row.child_rank[1] = 9;
  Served served;
  served.interface = "u0";
  served.all = "u0 u1";
  served.own.mac[5] = 3;
  return {Describe{"u0"},
          join,
          Leave{7},
          AskStatus{},
          served,
          Joined{1, 2, {}},
          Left{},
          Refused{base::Code::resources, "no room"},
          some_status(),
          Trace{100},
          Tracing{},
          some_records(),
          Share{{7, 1}, {2, 3}}};
}

TEST(ServiceProtocol, EveryMessageComesOutAgain) {
  for (const Message& message : all_messages()) {
    const auto bytes = encode(message);
    EXPECT_LE(bytes.size(), kLongestMessage);
    const auto decoded = decode(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_EQ(decoded->index(), message.index());
    EXPECT_EQ(encode(*decoded), bytes);
  }
  const auto decoded = decode(encode(some_status()));
  const auto& status = std::get<ServiceStatus>(*decoded);
  EXPECT_EQ(status.served.driver, "mlx5_core");
  EXPECT_EQ(status.counters, some_status().counters);
  EXPECT_EQ(status.retained_bytes, some_status().retained_bytes);
  EXPECT_EQ(status.service, some_status().service);
  EXPECT_EQ(status.own_groups, some_status().own_groups);
}

TEST(ServiceProtocol, NoPartAndNoMoreThanAMessageIsTaken) {
  for (const Message& message : all_messages()) {
    auto bytes = encode(message);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(decode(std::span(bytes).first(length)).ok()) << message.index();
    }
    bytes.push_back(std::byte{0});
    EXPECT_FALSE(decode(bytes).ok());
  }
}

TEST(ServiceProtocol, ErrorsSayWhatIsWrong) {
  const auto message_of = [](std::span<const std::byte> bytes) {
    const auto decoded = decode(bytes);
    return decoded.ok() ? std::string("taken") : decoded.error().message;
  };
  auto bytes = encode(Leave{1});
  bytes[4] = std::byte{200};
  EXPECT_EQ(message_of(bytes), "a NIC service message of kind 200");
  bytes = encode(Leave{1});
  bytes[12] = static_cast<std::byte>(std::to_integer<int>(bytes[12]) ^ 8);  // of the row
  EXPECT_EQ(decode(bytes).error().code, base::Code::unsupported);
  EXPECT_EQ(
      message_of(bytes),
      "the NIC service and this library are of different versions of Unisono; restart unisonod "
      "after an update");
  bytes.assign(5, std::byte{'x'});
  EXPECT_EQ(message_of(bytes), "5 bytes that are no message of the NIC service");
  bytes = encode(Refused{static_cast<base::Code>(77), "?"});
  EXPECT_EQ(message_of(bytes),
            "a NIC service message of kind 7 with 33 bytes whose fields do not fit");
}

TEST(ServiceProtocol, LongTextsAndListsAreCut) {
  const auto refused = decode(encode(Refused{base::Code::system, std::string(5000, 'a')}));
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(std::get<Refused>(*refused).text, std::string(kLongestText, 'a'));
  ServiceStatus status;
  status.own_groups.resize(1000);
  const auto bytes = encode(status);
  EXPECT_LE(bytes.size(), kLongestMessage);
  const auto decoded = decode(bytes);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::get<ServiceStatus>(*decoded).own_groups.size(), kMostGroupLines);
}

TEST(ServiceProtocol, SpoiltMessagesByTheThousand) {
  base::Prng random(20);
  for (int i = 0; i < 20000; ++i) {
    const auto messages = all_messages();
    auto bytes = encode(messages[random.below(messages.size())]);
    for (std::uint64_t turns = 1 + random.below(4); turns > 0; --turns) {
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.next());
    }
    const auto decoded = decode(bytes);
    if (!decoded.ok()) continue;
    EXPECT_EQ(encode(*decoded), bytes);
  }
}

}  // namespace
}  // namespace unisono::nic::test::service_protocol_test
