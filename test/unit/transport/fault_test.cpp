// SPDX-License-Identifier: BSD-3-Clause
#include "transport/fault/fault.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "transport/virtual/datagrams.hpp"

namespace unisono::transport::fault_test {
namespace {

struct Pair {
  explicit Pair(const FaultOptions& options, std::size_t room = 0)
      : network(2, {.delay_min_ns = 10, .delay_max_ns = 10, .inbox = 100'000, .room = room}),
        sender(network.attach(0), options, [this] { return network.now_ns(); }),
        receiver(network.attach(1)) {}

  std::size_t send(std::uint32_t number) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(&number, 1));
    const Outgoing datagram{1, bytes.first(1), bytes.subspan(1)};
    return sender.send({&datagram, 1});
  }
  std::vector<std::uint32_t> receive_all() {
    std::vector<std::uint32_t> result;
    network.advance_to(network.now_ns() + 10);
    std::vector<Incoming> batch(100);
    for (std::size_t count = 1; count != 0;) {
      count = receiver->receive(batch);
      for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t number = 0;
        EXPECT_EQ(batch[i].bytes.size(), sizeof number);
        std::memcpy(&number, batch[i].bytes.data(), sizeof number);
        result.push_back(number);
      }
    }
    return result;
  }

  VirtualDatagramNetwork network;
  FaultyDatagrams sender;
  std::unique_ptr<Datagrams> receiver;
};

TEST(Fault, WithoutFaultsNothingChanges) {
  Pair pair({});
  for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(pair.send(i), 1U);
  const auto got = pair.receive_all();
  ASSERT_EQ(got.size(), 1000U);
  for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(got[i], i);
}

TEST(Fault, LosesAndDoublesItsShare) {
  Pair pair({.loss = 0.1, .duplicates = 0.05, .seed = 3});
  constexpr std::uint32_t kSent = 20'000;
  for (std::uint32_t i = 0; i < kSent; ++i) EXPECT_EQ(pair.send(i), 1U) << "a loss is silent";
  const auto got = pair.receive_all();
  const std::set<std::uint32_t> different(got.begin(), got.end());
  EXPECT_EQ(different.size(), kSent - pair.sender.faults().lost);
  EXPECT_EQ(got.size(), different.size() + pair.sender.faults().duplicated);
  EXPECT_NEAR(static_cast<double>(pair.sender.faults().lost), 2000, 200);
  EXPECT_NEAR(static_cast<double>(pair.sender.faults().duplicated), 900, 150);
}

TEST(Fault, WhatIsHeldComesLater) {
  Pair pair({.reorder = 0.2, .delay_ns = 1000, .seed = 3});
  for (std::uint32_t i = 0; i < 100; ++i) pair.send(i);
  const std::size_t held = pair.sender.held();
  EXPECT_GT(held, 0U);
  auto got = pair.receive_all();
  EXPECT_EQ(got.size(), 100 - held);
  pair.network.advance_to(2000);
  std::vector<Incoming> none(1);
  EXPECT_EQ(pair.sender.receive(none), 0U);  // receive() also sends delayed datagrams that are due
  EXPECT_EQ(pair.sender.held(), 0U);
  for (const std::uint32_t each : pair.receive_all()) got.push_back(each);
  EXPECT_EQ(std::set(got.begin(), got.end()).size(), 100U);
  EXPECT_FALSE(std::is_sorted(got.begin(), got.end()));
}

TEST(Fault, TheSameSeedIsTheSameRun) {
  std::vector<std::vector<std::uint32_t>> runs;
  for (const std::uint64_t seed : {7, 7, 8}) {
    Pair pair({.loss = 0.3, .seed = seed});
    for (std::uint32_t i = 0; i < 200; ++i) pair.send(i);
    runs.push_back(pair.receive_all());
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST(Fault, NoRoomIsHandedOn) {
  Pair pair({}, 2);
  EXPECT_EQ(pair.send(1), 1U);
  EXPECT_EQ(pair.send(2), 1U);
  EXPECT_EQ(pair.send(3), 0U);
}

TEST(Fault, IsWrittenAsText) {
  const auto all = parse_fault("loss=0.1%,duplicates=5%,reorder=0.25,delay=200us,seed=7");
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_NEAR(all->loss, 0.001, 1e-12);
  EXPECT_NEAR(all->duplicates, 0.05, 1e-12);
  EXPECT_NEAR(all->reorder, 0.25, 1e-12);
  EXPECT_EQ(all->delay_ns, 200'000);
  EXPECT_EQ(all->seed, 7U);
  EXPECT_EQ(parse_fault("").value(), FaultOptions{});
  for (const char* wrong : {"loss", "loss=", "loss=101%", "loss=-1%", "loss=x", "speed=1", "=1",
                            "delay=fast", "seed=-1", "loss=nan", "loss=1%,,seed=1"}) {
    EXPECT_FALSE(parse_fault(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace unisono::transport::fault_test
