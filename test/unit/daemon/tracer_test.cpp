// SPDX-License-Identifier: BSD-3-Clause
// Records of packets go to the listening connection only. A listener that does not read loses some
// and gets their number.
#include "daemon/tracer.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/descriptor.hpp"
#include "unit/daemon/fake_device.hpp"

namespace unisono::daemon::test::tracer_test {
namespace {

// A connection: the daemon's end, and a process's of the same user.
struct Pair {
  Pair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    daemon.reset(ends[0]);
    process.reset(ends[1]);
  }
  // The next message, if there is one.
  std::optional<nic::Records> read() const {
    std::vector<std::byte> bytes(nic::kLongestMessage);
    const ssize_t length = recv(process.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (length <= 0) return std::nullopt;
    auto message = nic::decode(std::span(bytes).first(static_cast<std::size_t>(length)));
    EXPECT_TRUE(message.ok());
    return std::get<nic::Records>(*std::move(message));
  }

  base::Descriptor daemon, process;
};

void fill(FakeDevice& device, std::size_t count) {
  unisono_nic_trace record = {};
  for (std::size_t i = 0; i < count; ++i) {
    record.packet.sequence = i;
    device.records.push_back(record);
  }
}

TEST(Tracer, OneAtATimeAndOnlyAsLongAsItListens) {
  FakeDevice device;
  Tracer tracer(device);
  const Pair one;
  const Pair two;
  EXPECT_EQ(tracer.descriptor(), -1);
  ASSERT_TRUE(tracer.start(one.daemon.get(), 7).ok());
  EXPECT_EQ(device.every, 7U);
  EXPECT_EQ(tracer.descriptor(), 1000);
  const auto second = tracer.start(two.daemon.get(), 1);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message, "unisonod: another process traces; one at a time may");
  tracer.stop(two.daemon.get());
  EXPECT_EQ(device.every, 7U);
  tracer.stop(one.daemon.get());
  EXPECT_EQ(device.every, 0U);
  EXPECT_EQ(tracer.descriptor(), -1);
  EXPECT_TRUE(tracer.start(two.daemon.get(), 1).ok());
}

TEST(Tracer, HandsRecordsOutInOrder) {
  FakeDevice device;
  Tracer tracer(device);
  const Pair pair;
  ASSERT_TRUE(tracer.start(pair.daemon.get(), 1).ok());
  fill(device, nic::kMostRecords + 3);
  device.records[2].lost = 40;  // in the kernel, before it
  EXPECT_TRUE(tracer.hand_out());
  const auto full = pair.read();
  ASSERT_TRUE(full);
  EXPECT_EQ(full->records.size(), nic::kMostRecords);
  EXPECT_EQ(full->lost, 40U);
  const auto rest = pair.read();
  ASSERT_TRUE(rest);
  ASSERT_EQ(rest->records.size(), 3U);
  EXPECT_EQ(rest->records[2].packet.sequence, nic::kMostRecords + 2);
  EXPECT_EQ(rest->lost, 0U);
  EXPECT_FALSE(pair.read());
}

TEST(Tracer, WhoDoesNotReadIsToldWhatItLost) {
  FakeDevice device;
  Tracer tracer(device);
  const Pair pair;
  ASSERT_TRUE(tracer.start(pair.daemon.get(), 1).ok());
  constexpr std::size_t kRounds = 400;  // a socket holds only some of these
  for (std::size_t round = 0; round < kRounds; ++round) {
    fill(device, nic::kMostRecords);
    ASSERT_TRUE(tracer.hand_out());
  }
  std::size_t read = 0;
  while (const auto records = pair.read()) read += records->records.size();
  ASSERT_LT(read, kRounds * nic::kMostRecords);
  fill(device, 1);
  ASSERT_TRUE(tracer.hand_out());
  const auto next = pair.read();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->records.size(), 1U);
  EXPECT_EQ(next->lost, kRounds * nic::kMostRecords - read);
}

TEST(Tracer, LeavesTimeForOthers) {
  FakeDevice device;
  Tracer tracer(device);
  const Pair pair;
  ASSERT_TRUE(tracer.start(pair.daemon.get(), 1).ok());
  fill(device, 1'000'000);
  EXPECT_TRUE(tracer.hand_out());
  EXPECT_GT(device.records.size(), 900'000U);
}

TEST(Tracer, SeesThatWhoListenedHasGone) {
  FakeDevice device;
  Tracer tracer(device);
  Pair pair;
  ASSERT_TRUE(tracer.start(pair.daemon.get(), 1).ok());
  pair.process.reset();
  fill(device, 1);
  EXPECT_FALSE(tracer.hand_out());
}

}  // namespace
}  // namespace unisono::daemon::test::tracer_test
