// SPDX-License-Identifier: BSD-3-Clause
// What everything that sends datagrams has to do. A test file instantiates it for its own World:
//
//   struct World {
//     static base::Result<std::unique_ptr<World>> make(int ranks);  // an error: skipped, with it
//     Datagrams& at(int rank);
//     void wait(int rank);  // until something may have come to `rank`
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Name, DatagramsConformance, World);
//
// The World has to be one that loses and doubles nothing at these few datagrams; it may reorder.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/prng.hpp"
#include "base/result.hpp"
#include "datagram_exchange.hpp"
#include "transport/datagrams.hpp"

namespace unisono::transport {

template <class World>
class DatagramsConformance : public testing::Test {
 protected:
  void make(int ranks) {
    auto made = World::make(ranks);
    if (!made.ok()) {
      GTEST_SKIP() << made.error().message;
    }
    world = std::move(*made);
  }
  std::unique_ptr<World> world;
  base::Prng prng{29};
};
TYPED_TEST_SUITE_P(DatagramsConformance);

#define UNISONO_MAKE_WORLD(ranks) \
  this->make(ranks);              \
  if (this->world == nullptr) return

TYPED_TEST_P(DatagramsConformance, SaysWhatItIs) {
  UNISONO_MAKE_WORLD(2);
  const DatagramLimits& limits = this->world->at(1).limits();
  EXPECT_FALSE(limits.name.empty());
  EXPECT_GE(limits.max_payload, 512U);
  EXPECT_GE(limits.batch, 1U);
  EXPECT_EQ(this->world->at(0).rank(), 0);
  EXPECT_EQ(this->world->at(1).rank(), 1);
  EXPECT_EQ(this->world->at(1).counts(), DatagramCounts{});
  EXPECT_EQ(this->world->at(1).last_error(), "");
}

TYPED_TEST_P(DatagramsConformance, NothingThereIsNoWait) {
  UNISONO_MAKE_WORLD(2);
  std::vector<Incoming> incoming(4);
  EXPECT_EQ(this->world->at(0).receive(incoming), 0U);
  EXPECT_EQ(this->world->at(0).receive({}), 0U);
  EXPECT_EQ(this->world->at(0).send({}), 0U);
}

TYPED_TEST_P(DatagramsConformance, HeadAndBodyAreOneDatagramOfAnyLength) {
  UNISONO_MAKE_WORLD(2);
  const std::size_t most = this->world->at(0).limits().max_payload;
  for (const std::size_t length :
       {std::size_t{1}, std::size_t{2}, std::size_t{71}, std::size_t{500}, most - 1, most}) {
    for (const std::size_t head : {std::size_t{0}, std::size_t{1}, length / 2, length}) {
      const DatagramBytes bytes = random_datagram(this->prng, length);
      const auto all = std::span(bytes);
      const Outgoing one{1, all.first(head), all.subspan(head)};
      send_all(*this->world, 0, std::span(&one, 1));
      EXPECT_EQ(receive_some(*this->world, 1, 1), only(bytes)) << length << " " << head;
    }
  }
}

TYPED_TEST_P(DatagramsConformance, TheSourceMayBeReusedAtOnce) {
  UNISONO_MAKE_WORLD(2);
  DatagramBytes bytes(100, std::byte{1});
  const DatagramBytes before = bytes;
  const Outgoing one{1, {}, bytes};
  send_all(*this->world, 0, std::span(&one, 1));
  std::fill(bytes.begin(), bytes.end(), std::byte{2});
  EXPECT_EQ(receive_some(*this->world, 1, 1), only(before));
}

// Runs of one length, of one target, and of neither: the borders stay, whatever the system joins.
TYPED_TEST_P(DatagramsConformance, ABatchKeepsItsBorders) {
  constexpr int kRanks = 3;
  UNISONO_MAKE_WORLD(kRanks);
  const std::size_t most = std::min<std::size_t>(this->world->at(0).limits().max_payload, 1400);
  for (int turn = 0; turn < 40; ++turn) {
    std::vector<DatagramBytes> sent;
    std::vector<Outgoing> batch;
    std::map<int, std::vector<DatagramBytes>> expected;
    int target = 1;
    std::size_t length = most;
    for (int i = 0; i < 40; ++i) {
      if (this->prng.below(6) == 0) target = 3 - target;
      if (this->prng.below(6) == 0) length = 1 + this->prng.below(most);
      sent.push_back(random_datagram(this->prng, length));
      expected[target].push_back(sent.back());
      batch.push_back({.target = target});
    }
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const auto bytes = std::span<const std::byte>(sent[i]);
      const std::size_t head = std::min<std::size_t>(bytes.size(), 72);
      batch[i].head = bytes.first(head);
      batch[i].body = bytes.subspan(head);
    }
    send_all(*this->world, 0, batch);
    for (int rank = 1; rank < kRanks; ++rank) {
      std::sort(expected[rank].begin(), expected[rank].end());
      ASSERT_EQ(receive_some(*this->world, rank, expected[rank].size()), expected[rank])
          << "turn " << turn << ", rank " << rank;
    }
  }
}

TYPED_TEST_P(DatagramsConformance, MoreThanABatchInOneCall) {
  UNISONO_MAKE_WORLD(2);
  std::vector<DatagramBytes> sent;
  std::vector<Outgoing> batch;
  for (std::size_t i = 0; i < 2 * this->world->at(0).limits().batch + 3; ++i) {
    sent.push_back(random_datagram(this->prng, 16));
  }
  for (const DatagramBytes& bytes : sent) batch.push_back({1, bytes, {}});
  send_all(*this->world, 0, batch);
  std::sort(sent.begin(), sent.end());
  // One at a time: datagrams that do not fit into a call wait for the next.
  EXPECT_EQ(receive_some(*this->world, 1, sent.size(), 1), sent);
  EXPECT_EQ(this->world->at(0).counts().sent, sent.size());
  EXPECT_EQ(this->world->at(0).counts().refused, 0U);
  EXPECT_EQ(this->world->at(1).counts().received, sent.size());
}

// Received datagrams stay unchanged, may be written to, and end with the next call only.
TYPED_TEST_P(DatagramsConformance, WhatHasComeStaysUntilTheNextCall) {
  UNISONO_MAKE_WORLD(3);
  std::vector<Incoming> incoming(8);
  const DatagramBytes first = random_datagram(this->prng, 300);
  const Outgoing one{2, first, {}};
  send_all(*this->world, 0, std::span(&one, 1));
  while (this->world->at(2).receive(incoming) == 0) this->world->wait(2);
  const DatagramBytes second = random_datagram(this->prng, 300);
  const Outgoing other{2, second, {}};
  send_all(*this->world, 1, std::span(&other, 1));
  EXPECT_TRUE(
      std::equal(first.begin(), first.end(), incoming[0].bytes.begin(), incoming[0].bytes.end()));
  std::fill(incoming[0].bytes.begin(), incoming[0].bytes.end(), std::byte{0});
  EXPECT_EQ(receive_some(*this->world, 2, 1), only(second));
}

// A datagram may be dropped, as while the kernel sets up an interface's routes: each rank sends
// until its targets have heard of it.
TYPED_TEST_P(DatagramsConformance, EveryPairOfRanks) {
  constexpr int kRanks = 4;
  UNISONO_MAKE_WORLD(kRanks);
  std::vector<std::set<int>> heard(kRanks);
  const auto have_all_heard = [&heard] {
    return std::ranges::all_of(heard, [](const auto& from) { return from.size() == kRanks - 1; });
  };
  std::vector<Incoming> incoming(16);
  while (!have_all_heard()) {
    for (int source = 0; source < kRanks; ++source) {
      const DatagramBytes own(9, static_cast<std::byte>(source));
      for (int target = 0; target < kRanks; ++target) {
        if (source == target || heard[static_cast<std::size_t>(target)].contains(source)) continue;
        const Outgoing one{target, own, {}};
        send_all(*this->world, source, std::span(&one, 1));
      }
    }
    for (int target = 0; target < kRanks; ++target) {
      const std::size_t got = this->world->at(target).receive(incoming);
      for (const Incoming& one : std::span(incoming).first(got)) {
        ASSERT_EQ(one.bytes.size(), 9U);
        const auto source = std::to_integer<int>(one.bytes[0]);
        ASSERT_LT(source, kRanks);
        EXPECT_NE(source, target);
        EXPECT_EQ(std::ranges::count(one.bytes, one.bytes[0]), 9);
        heard[static_cast<std::size_t>(target)].insert(source);
      }
    }
  }
}

TYPED_TEST_P(DatagramsConformance, TheGroupIsAllOthersAndEachHearsItOnce) {
  constexpr int kRanks = 4;
  UNISONO_MAKE_WORLD(kRanks);
  if (!this->world->at(0).limits().multicast) GTEST_SKIP() << "no multicast here";
  for (int source = 0; source < kRanks; ++source) {
    std::vector<DatagramBytes> sent;
    std::vector<Outgoing> batch;
    for (int i = 0; i < 8; ++i) sent.push_back(random_datagram(this->prng, i < 6 ? 200 : 77));
    for (const DatagramBytes& bytes : sent) batch.push_back({kGroup, bytes, {}});
    send_all(*this->world, source, batch);
    std::sort(sent.begin(), sent.end());
    // A datagram that reaches all ranks afterwards shows that nothing else came before.
    const DatagramBytes last(3, std::byte{7});
    for (int target = 0; target < kRanks; ++target) {
      if (target != source) {
        EXPECT_EQ(receive_some(*this->world, target, sent.size()), sent)
            << source << " to " << target;
      }
      const Outgoing end{target, last, {}};
      send_all(*this->world, (target + 1) % kRanks, std::span(&end, 1));
      EXPECT_EQ(receive_some(*this->world, target, 1), only(last));
    }
  }
}

TYPED_TEST_P(DatagramsConformance, ItsDescriptorWakesWhoSleeps) {
  UNISONO_MAKE_WORLD(3);
  const int descriptor = this->world->at(1).descriptor();
  if (descriptor < 0) GTEST_SKIP() << "there is nothing to sleep on here";
  EXPECT_TRUE(this->world->at(1).may_sleep(false));
  EXPECT_FALSE(is_readable(descriptor));
  const DatagramBytes bytes(5, std::byte{1});
  const Outgoing one{1, bytes, {}};
  send_all(*this->world, 0, std::span(&one, 1));
  this->world->wait(1);
  EXPECT_TRUE(is_readable(descriptor));
  EXPECT_EQ(receive_some(*this->world, 1, 1), only(bytes));
  EXPECT_TRUE(this->world->at(1).may_sleep(false));
  EXPECT_FALSE(is_readable(descriptor));
  if (!this->world->at(0).limits().multicast) return;
  const Outgoing all{kGroup, bytes, {}};
  send_all(*this->world, 0, std::span(&all, 1));
  this->world->wait(1);
  EXPECT_TRUE(is_readable(descriptor));
  EXPECT_EQ(receive_some(*this->world, 1, 1), only(bytes));
  EXPECT_TRUE(this->world->at(1).may_sleep(false));
  EXPECT_FALSE(is_readable(descriptor));
}

TYPED_TEST_P(DatagramsConformance, WhatLimitsForbidStopsTheProgram) {
  UNISONO_MAKE_WORLD(2);
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const DatagramBytes longer(this->world->at(0).limits().max_payload + 1);
  const Outgoing cases[] = {{1, longer, {}},
                            {1, {}, {}},
                            {0, std::span(longer).first(1), {}},
                            {2, std::span(longer).first(1), {}},
                            {-2, std::span(longer).first(1), {}}};
  for (const Outgoing& one : cases) {
    EXPECT_DEATH(this->world->at(0).send(std::span(&one, 1)), "of a datagram");
  }
}

#undef UNISONO_MAKE_WORLD

REGISTER_TYPED_TEST_SUITE_P(DatagramsConformance, SaysWhatItIs, NothingThereIsNoWait,
                            HeadAndBodyAreOneDatagramOfAnyLength, TheSourceMayBeReusedAtOnce,
                            ABatchKeepsItsBorders, MoreThanABatchInOneCall,
                            WhatHasComeStaysUntilTheNextCall, EveryPairOfRanks,
                            TheGroupIsAllOthersAndEachHearsItOnce, ItsDescriptorWakesWhoSleeps,
                            WhatLimitsForbidStopsTheProgram);

}  // namespace unisono::transport
