// SPDX-License-Identifier: BSD-3-Clause
#include "transport/virtual/datagrams.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <vector>

namespace unisono::transport::virtual_datagrams_test {
namespace {

std::size_t send(Datagrams& from, int target, std::uint32_t number) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(&number, 1));
  const Outgoing datagram{target, bytes.first(3), bytes.subspan(3)};
  return from.send({&datagram, 1});
}

std::vector<std::uint32_t> receive_all(Datagrams& at) {
  std::vector<std::uint32_t> result;
  std::array<Incoming, 7> batch;
  for (std::size_t count = 1; count != 0;) {
    count = at.receive(batch);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(batch[i].bytes.data()) % 8, 0U);
      EXPECT_EQ(batch[i].bytes.size(), 4U);
      result.resize(result.size() + 1);
      std::memcpy(&result.back(), batch[i].bytes.data(), 4);
    }
  }
  return result;
}

std::vector<std::uint32_t> deliver_and_receive(VirtualDatagramNetwork& network, Datagrams& at) {
  while (network.advance()) {
  }
  return receive_all(at);
}

TEST(VirtualDatagrams, TakeTheirTime) {
  VirtualDatagramNetwork network(2, {.delay_min_ns = 100, .delay_max_ns = 200});
  const auto from = network.attach(0);
  const auto to = network.attach(1);
  EXPECT_EQ(to->rank(), 1);
  EXPECT_FALSE(to->limits().multicast);
  EXPECT_EQ(send(*from, 1, 7), 1U);
  network.advance_to(99);
  EXPECT_TRUE(receive_all(*to).empty());
  EXPECT_GE(network.next_arrival_ns(), 100);
  network.advance_to(200);
  EXPECT_EQ(receive_all(*to), std::vector<std::uint32_t>{7});
  EXPECT_TRUE(receive_all(*from).empty());
  EXPECT_EQ(network.now_ns(), 200);
  EXPECT_FALSE(network.advance());
}

TEST(VirtualDatagrams, OvertakeEachOtherUnlessToldNotTo) {
  for (const bool reorder : {true, false}) {
    VirtualDatagramNetwork network(2, {.reorder = reorder});
    const auto from = network.attach(0);
    const auto to = network.attach(1);
    for (std::uint32_t i = 0; i < 100; ++i) send(*from, 1, i);
    const auto got = deliver_and_receive(network, *to);
    EXPECT_EQ(std::set(got.begin(), got.end()).size(), 100U);
    EXPECT_EQ(std::is_sorted(got.begin(), got.end()), !reorder);
  }
}

TEST(VirtualDatagrams, AreLostAndDoubledBySeed) {
  std::vector<std::vector<std::uint32_t>> runs;
  for (const std::uint64_t seed : {1, 1, 2}) {
    VirtualDatagramNetwork network(
        2, {.seed = seed, .loss = 0.1, .duplicates = 0.05, .inbox = 100'000});
    const auto from = network.attach(0);
    const auto to = network.attach(1);
    for (std::uint32_t i = 0; i < 10'000; ++i) send(*from, 1, i);
    runs.push_back(deliver_and_receive(network, *to));
    EXPECT_NEAR(static_cast<double>(network.lost()), 1050, 150);
    EXPECT_NEAR(static_cast<double>(runs.back().size()), 9450, 200);
    EXPECT_EQ(static_cast<std::size_t>(network.delivered()), runs.back().size());
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST(VirtualDatagrams, PartitionsDeathsAndDooms) {
  VirtualDatagramNetwork network(3, {.delay_min_ns = 1, .delay_max_ns = 1});
  const auto zero = network.attach(0);
  const auto one = network.attach(1);
  const auto two = network.attach(2);
  network.cut(0, 1);
  send(*zero, 1, 1);
  send(*one, 0, 2);
  send(*two, 1, 3);
  EXPECT_EQ(deliver_and_receive(network, *one), std::vector<std::uint32_t>{3});
  EXPECT_TRUE(receive_all(*zero).empty());
  network.mend(0, 1);
  network.lose_next(0, 1, 1);
  send(*zero, 1, 4);
  send(*zero, 1, 5);
  EXPECT_EQ(deliver_and_receive(network, *one), std::vector<std::uint32_t>{5});
  send(*zero, 1, 6);  // under way when its receiver dies
  network.kill(1);
  send(*one, 0, 7);
  EXPECT_TRUE(deliver_and_receive(network, *one).empty());
  EXPECT_TRUE(receive_all(*zero).empty());
}

TEST(VirtualDatagrams, OneDirectionIsCut) {
  VirtualDatagramNetwork network(2, {.delay_min_ns = 1, .delay_max_ns = 1});
  const auto zero = network.attach(0);
  const auto one = network.attach(1);
  network.cut_one_way(0, 1);
  send(*zero, 1, 1);
  send(*one, 0, 2);
  EXPECT_TRUE(deliver_and_receive(network, *one).empty());
  EXPECT_EQ(receive_all(*zero), std::vector<std::uint32_t>{2});
  network.mend(0, 1);
  send(*zero, 1, 3);
  EXPECT_EQ(deliver_and_receive(network, *one), std::vector<std::uint32_t>{3});
}

TEST(VirtualDatagrams, LongOnesVanishOnANarrowPath) {
  VirtualDatagramNetwork network(
      3, {.delay_min_ns = 1, .delay_max_ns = 1, .max_payload = 100, .multicast = true});
  const auto zero = network.attach(0);
  const auto one = network.attach(1);
  const auto two = network.attach(2);
  const auto received_lengths = [&network](Datagrams& at) {
    while (network.advance()) {
    }
    std::array<Incoming, 8> batch;
    std::vector<std::size_t> lengths;
    const std::size_t count = at.receive(batch);
    for (std::size_t i = 0; i < count; ++i) lengths.push_back(batch[i].bytes.size());
    return lengths;
  };
  const std::array<std::byte, 100> bytes{};
  const auto send_two = [&bytes](Datagrams& from, int target) {
    for (const std::size_t length : {90, 91}) {
      const Outgoing datagram{target, std::span(bytes).first(length), {}};
      EXPECT_EQ(from.send({&datagram, 1}), 1U);
    }
  };
  network.narrow(0, 1, 90);
  send_two(*zero, 1);
  send_two(*one, 0);
  EXPECT_EQ(received_lengths(*one), std::vector<std::size_t>{90});
  EXPECT_EQ(received_lengths(*zero), std::vector<std::size_t>{90});
  send_two(*zero, kGroup);
  EXPECT_EQ(received_lengths(*one), std::vector<std::size_t>{90});
  EXPECT_EQ(received_lengths(*two), (std::vector<std::size_t>{90, 91}));
  network.narrow_one_way(0, 1, 0);
  send_two(*zero, 1);
  send_two(*one, 0);
  EXPECT_EQ(received_lengths(*one), (std::vector<std::size_t>{90, 91}));
  EXPECT_EQ(received_lengths(*zero), std::vector<std::size_t>{90});
}

TEST(VirtualDatagrams, RoomIsLimited) {
  VirtualDatagramNetwork network(2, {.delay_min_ns = 1, .delay_max_ns = 1, .inbox = 3, .room = 2});
  const auto from = network.attach(0);
  const auto to = network.attach(1);
  std::array<Incoming, 1> batch;
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(send(*from, 1, i), 1U);
    EXPECT_EQ(send(*from, 1, i), 1U);
    EXPECT_EQ(send(*from, 1, i), 0U);
    EXPECT_EQ(from->receive(batch), 0U);
  }
  EXPECT_EQ(from->counts().short_sends, 3U);
  EXPECT_EQ(deliver_and_receive(network, *to).size(), 3U) << "the inbox overflows";
  EXPECT_EQ(network.lost(), 3);
}

TEST(VirtualDatagrams, MulticastReachesEachByItsOwnLuck) {
  VirtualDatagramNetwork network(4, {.delay_min_ns = 1, .delay_max_ns = 9, .multicast = true});
  const auto from = network.attach(0);
  network.lose_next(0, 2, 1);
  send(*from, kGroup, 9);
  EXPECT_EQ(network.sent(), 1);
  for (int rank = 1; rank < 4; ++rank) {
    const auto to = network.attach(rank);
    EXPECT_EQ(deliver_and_receive(network, *to).size(), rank == 2 ? 0U : 1U);
  }
  EXPECT_TRUE(receive_all(*from).empty());
}

TEST(VirtualDatagrams, MulticastAloneStopsInOneDirection) {
  VirtualDatagramNetwork network(3, {.multicast = true});
  const auto first = network.attach(0);
  const auto second = network.attach(1);
  const auto third = network.attach(2);
  network.stop_multicast(0, 2);
  send(*first, kGroup, 1);
  EXPECT_EQ(deliver_and_receive(network, *second), std::vector<std::uint32_t>{1});
  EXPECT_TRUE(receive_all(*third).empty());
  send(*first, 2, 2);
  EXPECT_EQ(deliver_and_receive(network, *third), std::vector<std::uint32_t>{2});
  send(*third, kGroup, 3);
  EXPECT_EQ(deliver_and_receive(network, *first), std::vector<std::uint32_t>{3});
  EXPECT_EQ(network.lost(), 1);
  network.stop_multicast();
  send(*third, kGroup, 4);
  while (network.advance()) {
  }
  EXPECT_TRUE(receive_all(*first).empty());
  EXPECT_EQ(network.lost(), 3);
}

}  // namespace
}  // namespace unisono::transport::virtual_datagrams_test
