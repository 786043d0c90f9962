// SPDX-License-Identifier: BSD-3-Clause
// Remote memory by libfabric, on loopback: when transfers are complete, and how they fail. Without
// libfabric it is skipped, with the reason.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/prng.hpp"
#include "ofi_world.hpp"

namespace unisono::transport::ofi_test {
namespace {

std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed) {
  base::Prng prng(seed);
  std::vector<std::byte> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::byte>(prng.next());
  return bytes;
}

class OfiTest : public testing::TestWithParam<std::string> {
 protected:
  void make(int ranks) {
    auto made = OfiWorld::make(ranks, GetParam());
    if (!made.ok()) GTEST_SKIP() << made.error().message;
    world = std::move(*made);
  }
  bool write(int from, int to, std::uint64_t offset, const std::vector<std::byte>& bytes,
             std::uint64_t token) {
    return world->at(from).write({.rank = to,
                                  .offset = offset,
                                  .from = bytes.data(),
                                  .bytes = bytes.size(),
                                  .token = token});
  }
  bool is_there(int rank, std::uint64_t offset, const std::vector<std::byte>& bytes) {
    return std::memcmp(world->region(rank) + offset, bytes.data(), bytes.size()) == 0;
  }
  std::unique_ptr<OfiWorld> world;
};

#define UNISONO_MAKE_WORLD(ranks) \
  make(ranks);                    \
  if (world == nullptr) return

TEST_P(OfiTest, SaysWhatItIs) {
  UNISONO_MAKE_WORLD(2);
  EXPECT_EQ(world->at(0).name().substr(0, 4 + GetParam().size()), "ofi/" + GetParam());
  EXPECT_EQ(world->at(0).under_way(), 0U);
  EXPECT_EQ(world->at(0).error_of(1), "");
  // Nobody is to guess them.
  EXPECT_NE(world->at(0).card().key, world->at(1).card().key);
  EXPECT_EQ(ofi_description().substr(0, 10), "libfabric ");
}

TEST_P(OfiTest, AWriteIsCompleteWhenItsBytesAreThere) {
  UNISONO_MAKE_WORLD(2);
  std::uint64_t token = 7;
  for (const std::size_t bytes : {1UL, 8UL, 4095UL, 65536UL, 262144UL, 262145UL, 3145733UL}) {
    auto sent = random_bytes(bytes, token);
    const auto before = sent;
    ASSERT_TRUE(write(0, 1, 12345, sent, ++token));
    std::fill(sent.begin(), sent.end(), std::byte{0});  // it may be reused at once
    EXPECT_EQ(world->at(0).under_way(), 1U);
    const Completion done = world->next_completion(0);
    EXPECT_TRUE(is_there(1, 12345, before)) << bytes;
    EXPECT_TRUE(done.arrived) << world->at(0).error_of(1);
    EXPECT_EQ(done.rank, 1);
    EXPECT_EQ(done.token, token);
    EXPECT_EQ(world->at(0).under_way(), 0U);
    EXPECT_EQ(world->region(1)[12344], std::byte{0});
  }
}

// Not when they have gone: with a provider that needs the target's help, it does not come.
TEST_P(OfiTest, ACompletionIsNeverAheadOfTheBytes) {
  UNISONO_MAKE_WORLD(2);
  for (unsigned turn = 1; turn < 20; ++turn) {
    const auto sent = random_bytes(100'000 + turn, turn);
    ASSERT_TRUE(write(0, 1, 0, sent, turn));
    Completion done;
    for (int i = 0; i < 200; ++i) {
      if (world->at(0).poll(std::span(&done, 1)) == 1) break;
    }
    if (done.rank < 0) done = world->next_completion(0);
    ASSERT_TRUE(done.arrived);
    ASSERT_TRUE(is_there(1, 0, sent)) << turn;
  }
}

TEST_P(OfiTest, AReadBringsWhatIsThere) {
  UNISONO_MAKE_WORLD(3);
  for (const std::size_t bytes : {8UL, 70'000UL, 5'000'000UL}) {
    const auto there = random_bytes(bytes, bytes);
    std::memcpy(world->region(2) + 64, there.data(), bytes);
    world->at(1).read(
        {.rank = 2, .offset = 64, .to = world->region(1) + 4096, .bytes = bytes, .token = bytes});
    const Completion done = world->next_completion(1);
    EXPECT_TRUE(done.arrived) << world->at(1).error_of(2);
    EXPECT_EQ(done.token, bytes);
    EXPECT_TRUE(is_there(1, 4096, there));
  }
}

TEST_P(OfiTest, EveryPairAtOnce) {
  constexpr int kRanks = 4;
  constexpr std::size_t kBytes = 300'000;
  UNISONO_MAKE_WORLD(kRanks);
  const auto place = [](int source) { return static_cast<std::uint64_t>(source) * kBytes; };
  const auto sent = [](int source, int target) {
    return random_bytes(kBytes, static_cast<std::uint64_t>(1 + source * kRanks + target));
  };
  for (int source = 0; source < kRanks; ++source) {
    for (int target = 0; target < kRanks; ++target) {
      if (source == target) continue;
      ASSERT_TRUE(write(source, target, place(source), sent(source, target), 1));
    }
  }
  for (int source = 0; source < kRanks; ++source) {
    for (int i = 1; i < kRanks; ++i) EXPECT_TRUE(world->next_completion(source).arrived);
    for (int target = 0; target < kRanks; ++target) {
      if (source != target) {
        EXPECT_TRUE(is_there(target, place(source), sent(source, target)));
      }
    }
  }
}

TEST_P(OfiTest, WhatDoesNotFitIsRefusedUntilThereIsRoom) {
  UNISONO_MAKE_WORLD(2);
  const auto sent = random_bytes(std::size_t{4} << 20, 3);
  std::size_t taken = 0;
  while (write(0, 1, 0, sent, taken)) ++taken;
  EXPECT_GE(taken, 4U);
  EXPECT_EQ(world->at(0).under_way(), taken);
  for (std::size_t i = 0; i < taken; ++i) EXPECT_TRUE(world->next_completion(0).arrived);
  EXPECT_TRUE(write(0, 1, 0, sent, 99));
  EXPECT_EQ(world->next_completion(0).token, 99U);
}

// The target, which does nothing by itself, sleeps until there is something for it to do.
TEST_P(OfiTest, ItsDescriptorWakesWhoSleeps) {
  UNISONO_MAKE_WORLD(2);
  const int descriptor = world->at(1).descriptor();
  if (descriptor < 0) GTEST_SKIP() << "there is nothing to sleep on here";
  const auto sent = random_bytes(1'000'000, 4);
  ASSERT_TRUE(write(0, 1, 0, sent, 1));
  Completion done;
  while (world->at(0).poll(std::span(&done, 1)) == 0) {
    pollfd both[] = {{descriptor, POLLIN, 0}, {world->at(0).descriptor(), POLLIN, 0}};
    if (world->at(1).may_sleep() && world->at(0).may_sleep()) poll(both, 2, 10);
    world->at(1).poll({});
  }
  EXPECT_TRUE(done.arrived);
  EXPECT_TRUE(is_there(1, 0, sent));
}

TEST_P(OfiTest, APeerThatIsGoneIsNamed) {
  UNISONO_MAKE_WORLD(3);
  const auto sent = random_bytes(100'000, 5);
  ASSERT_TRUE(write(0, 1, 0, sent, 1));
  EXPECT_TRUE(world->next_completion(0).arrived);
  world->all[1].reset();
  ASSERT_TRUE(write(0, 1, 0, sent, 2));
  const Completion done = world->next_completion(0);
  EXPECT_FALSE(done.arrived);
  EXPECT_EQ(done.token, 2U);
  EXPECT_NE(world->at(0).error_of(1).find("rank 1"), std::string::npos) << world->at(0).error_of(1);
  // It does not keep the others.
  ASSERT_TRUE(write(0, 2, 0, sent, 3));
  EXPECT_TRUE(world->next_completion(0).arrived);
  EXPECT_EQ(world->at(0).error_of(2), "");
}

TEST_P(OfiTest, WithAnotherKeyNothingIsWritten) {
  UNISONO_MAKE_WORLD(2);
  RegionCard card = world->at(1).card();
  card.key ^= 0x5a5a;
  ASSERT_TRUE(world->at(0).meet(1, card).ok());
  const auto sent = random_bytes(100'000, 6);
  ASSERT_TRUE(write(0, 1, 0, sent, 1));
  EXPECT_FALSE(world->next_completion(0).arrived);
  EXPECT_FALSE(is_there(1, 0, sent));
}

TEST_P(OfiTest, WritesOutsideTheRegionStopTheProgram) {
  UNISONO_MAKE_WORLD(2);
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const std::vector<std::byte> bytes(16);
  EXPECT_DEATH(write(0, 1, kOfiRegion - 8, bytes, 1), "outside the region");
}

INSTANTIATE_TEST_SUITE_P(Ofi, OfiTest, testing::Values("tcp"),
                         [](const auto& one) { return one.param; });

TEST(OfiOpen, SaysWhatIsMissing) {
  if (ofi_description().substr(0, 10) != "libfabric ") GTEST_SKIP() << ofi_description();
  const auto no_provider = OfiWorld::make(1, "pigeon");
  ASSERT_FALSE(no_provider.ok());
  EXPECT_EQ(no_provider.error().code, base::Code::unsupported);
  EXPECT_NE(no_provider.error().message.find("'pigeon'"), std::string::npos);
  EXPECT_NE(no_provider.error().message.find("UNISONO_OFI_PROVIDER"), std::string::npos);
  // An address that is not this host's.
  const Region region;
  const auto elsewhere = open_ofi(
      {.address = *parse_ip("192.0.2.1"), .region = region.data(), .region_bytes = kOfiRegion});
  ASSERT_FALSE(elsewhere.ok());
  EXPECT_NE(elsewhere.error().message.find("192.0.2.1"), std::string::npos)
      << elsewhere.error().message;
}

// Libraries that libfabric brings along would take some for themselves.
TEST(OfiOpen, LeavesSignalsAsTheyAre) {
  const auto actions = [] {
    std::vector<void (*)(int)> handlers;
    for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGINT, SIGTERM}) {
      struct sigaction action {};
      EXPECT_EQ(sigaction(signal, nullptr, &action), 0);
      handlers.push_back(action.sa_handler);
    }
    return handlers;
  };
  const auto before = actions();
  const auto world = OfiWorld::make(1);
  if (!world.ok()) GTEST_SKIP() << world.error().message;
  EXPECT_EQ(actions(), before);
}

#undef UNISONO_MAKE_WORLD

}  // namespace
}  // namespace unisono::transport::ofi_test
