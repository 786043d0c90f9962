// SPDX-License-Identifier: BSD-3-Clause
// Remote memory by verbs, between ranks of one process and thread, over whatever RDMA device this
// machine has. Without one it is skipped, with the reason: `./dev test --vm` has one.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "region.hpp"
#include "transport/verbs/verbs.hpp"

namespace unisono::transport::verbs_test {
namespace {

std::vector<std::byte> some_bytes(std::size_t count, std::uint64_t seed) {
  base::Prng prng(seed);
  std::vector<std::byte> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::byte>(prng.next());
  return bytes;
}

class VerbsTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kFlag = kRegionBytes - 8;

  // Emulated processors are slow: acknowledgements may take long.
  void make(int ranks, std::int64_t silence_ns = 100 * base::kSecond) {
    for (int rank = 0; rank < ranks; ++rank) {
      regions.push_back(std::make_unique<Region>());
      auto opened = open_verbs({.rank = rank,
                                .ranks = ranks,
                                .key = {.low = 5, .high = 6},
                                .region = regions.back()->data(),
                                .region_bytes = kRegionBytes,
                                .silence_ns = silence_ns});
      if (!opened.ok()) GTEST_SKIP() << opened.error().message;
      all.push_back(std::move(*opened));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      for (int other = 0; other < ranks; ++other) {
        if (other == rank) continue;
        ASSERT_TRUE(at(rank).meet(other, at(other).card()).ok());
      }
    }
  }
  RemoteMemory& at(int rank) { return *all[static_cast<std::size_t>(rank)]; }
  std::byte* region(int rank) { return regions[static_cast<std::size_t>(rank)]->data(); }
  void poll_all() {
    for (auto& each : all) {
      if (each != nullptr) each->poll({});
    }
  }
  void connect(int from, int to) {
    while (!at(from).accepts_message(to)) poll_all();
  }
  std::uint64_t flag_of(int rank, std::uint64_t flag = kFlag) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(region(rank) + flag))
        .load(std::memory_order_acquire);
  }
  // Writes a message with a flag, when it may begin.
  void send(int from, int to, std::uint64_t offset, const std::vector<std::byte>& bytes,
            std::uint64_t value, std::uint64_t flag = kFlag) {
    connect(from, to);
    ASSERT_TRUE(at(from).write({.rank = to,
                                .offset = offset,
                                .from = bytes.data(),
                                .bytes = bytes.size(),
                                .flag = flag,
                                .flag_value = value}));
  }
  bool is_there(int rank, std::uint64_t offset, const std::vector<std::byte>& bytes) {
    return bytes.empty() || std::memcmp(region(rank) + offset, bytes.data(), bytes.size()) == 0;
  }

  std::vector<std::unique_ptr<Region>> regions;
  std::vector<std::unique_ptr<RemoteMemory>> all;
};

#define UNISONO_MAKE_VERBS(...) \
  make(__VA_ARGS__);            \
  if (IsSkipped()) return

// Around every length at which another way begins: words, inline, one packet, pieces.
TEST_F(VerbsTest, AFlagIsNeverAheadOfItsBytes) {
  UNISONO_MAKE_VERBS(2);
  std::uint64_t value = 0;
  for (const std::size_t middle :
       {8UL, 64UL, 180UL, 216UL, 472UL, 984UL, 1024UL, 4096UL, 65536UL, 131072UL, 1'000'000UL}) {
    for (const std::size_t length : {middle - 1, middle, middle + 1}) {
      const auto bytes = some_bytes(length, length);
      const auto before = bytes;
      send(0, 1, 12345, bytes, ++value);
      while (flag_of(1) != value) poll_all();
      ASSERT_TRUE(is_there(1, 12345, before)) << length;
      ASSERT_EQ(region(1)[12344], std::byte{0});
    }
  }
  EXPECT_EQ(at(1).flags_raised(), value);
  EXPECT_GT(at(0).moved(1), 0U);
}

TEST_F(VerbsTest, AFlagAloneAndACounterThatOnlyGrows) {
  UNISONO_MAKE_VERBS(2);
  send(0, 1, 0, {}, 9);
  while (flag_of(1) != 9) poll_all();
  for (const std::uint64_t value : {20U, 15U}) {
    connect(0, 1);
    ASSERT_TRUE(at(0).write({.rank = 1, .flag = 64, .flag_value = value, .forward = true}));
  }
  while (at(1).flags_raised() != 3) poll_all();
  EXPECT_EQ(flag_of(1, 64), 20U);
}

// Many more than the ring has slots, and without a look in between: they wait, and keep their
// order.
TEST_F(VerbsTest, MessagesWithoutRoomWaitInTheirOrder) {
  UNISONO_MAKE_VERBS(2);
  connect(0, 1);
  const auto bytes = some_bytes(3'000'000, 1);
  ASSERT_TRUE(at(0).write({.rank = 1, .offset = 8, .from = bytes.data(), .bytes = 100}));
  ASSERT_TRUE(at(0).write({.rank = 1,
                           .offset = 108,
                           .from = bytes.data() + 100,
                           .bytes = bytes.size() - 100,
                           .flag = kFlag,
                           .flag_value = 1}));
  EXPECT_FALSE(at(0).accepts_message(1));
  EXPECT_EQ(at(0).under_way(), 1U);
  while (flag_of(1) != 1) poll_all();
  EXPECT_TRUE(is_there(1, 8, bytes));
  while (at(0).under_way() != 0) poll_all();
  EXPECT_TRUE(at(0).accepts_message(1));
}

TEST_F(VerbsTest, EveryPairAtOnceAndOftenInARow) {
  constexpr int kRanks = 4;
  constexpr std::uint64_t kTurns = 60;
  UNISONO_MAKE_VERBS(kRanks);
  const auto place = [](int source) { return static_cast<std::uint64_t>(source) * 100'000; };
  const auto flag = [](int source) { return kFlag - 8 * static_cast<std::uint64_t>(source); };
  const auto sent = [](int source, int target, std::uint64_t turn) {
    return some_bytes(1 + turn * turn * 13,
                      turn * 100 + static_cast<std::uint64_t>(source * kRanks + target));
  };
  for (std::uint64_t turn = 1; turn <= kTurns; ++turn) {
    for (int source = 0; source < kRanks; ++source) {
      for (int target = 0; target < kRanks; ++target) {
        if (source == target) continue;
        send(source, target, place(source), sent(source, target, turn), turn, flag(source));
      }
    }
    for (int source = 0; source < kRanks; ++source) {
      for (int target = 0; target < kRanks; ++target) {
        if (source == target) continue;
        while (flag_of(target, flag(source)) != turn) poll_all();
        ASSERT_TRUE(is_there(target, place(source), sent(source, target, turn)));
      }
    }
  }
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(at(rank).failures(), 0U);
}

TEST_F(VerbsTest, ItsDescriptorWakesARankThatSleeps) {
  UNISONO_MAKE_VERBS(2);
  connect(0, 1);
  while (!at(1).may_sleep()) {
  }
  pollfd sleeper{.fd = at(1).descriptor(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&sleeper, 1, 0), 0);
  send(0, 1, 0, some_bytes(100, 1), 1);
  while (flag_of(1) != 1) {
    ASSERT_GE(poll(&sleeper, 1, -1), 0);
    at(1).poll({});
    if (flag_of(1) != 1) at(1).may_sleep();
  }
  EXPECT_EQ(at(1).flags_raised(), 1U);
}

TEST_F(VerbsTest, ALostPeerIsNamedAndTheOthersStay) {
  UNISONO_MAKE_VERBS(3, base::kSecond);
  send(0, 1, 0, some_bytes(100, 1), 1);
  while (flag_of(1) != 1) poll_all();
  all[1].reset();
  connect(0, 1);
  const auto bytes = some_bytes(100, 2);
  ASSERT_TRUE(at(0).write(
      {.rank = 1, .from = bytes.data(), .bytes = bytes.size(), .flag = kFlag, .flag_value = 2}));
  while (at(0).failures() == 0) poll_all();
  EXPECT_NE(at(0).error_of(1).find("rank 1"), std::string::npos) << at(0).error_of(1);
  EXPECT_NE(at(0).error_of(1).find("port 1"), std::string::npos);
  EXPECT_NE(at(0).error_of(1).find("UNISONO_BULK=tcp"), std::string::npos);
  EXPECT_FALSE(at(0).accepts_message(1));
  EXPECT_EQ(at(0).under_way(), 0U);
  send(0, 2, 0, bytes, 3);
  while (flag_of(2) != 3) poll_all();
  EXPECT_EQ(at(0).error_of(2), "");
}

TEST_F(VerbsTest, WhatARankSentBeforeItLeftIsRead) {
  UNISONO_MAKE_VERBS(2);
  const auto bytes = some_bytes(300'000, 4);
  send(0, 1, 0, bytes, 1);
  while (at(0).under_way() != 0) at(0).poll({});
  all[0].reset();
  at(1).forget(0);
  while (flag_of(1) != 1) at(1).poll({});
  EXPECT_TRUE(is_there(1, 0, bytes));
  EXPECT_EQ(at(1).failures(), 0U);
}

#undef UNISONO_MAKE_VERBS

}  // namespace
}  // namespace unisono::transport::verbs_test
