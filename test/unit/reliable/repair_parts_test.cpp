// SPDX-License-Identifier: BSD-3-Clause
// The parts of a group that decide on numbers alone.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "reliable/group/answers.hpp"
#include "reliable/group/kept_packets.hpp"
#include "reliable/group/multicast_watch.hpp"

namespace unisono::reliable::repair_parts_test {
namespace {

TEST(Answers, TheWorstCountsOnceAllHaveAnswered) {
  Answers answers;
  const std::vector<int> children{3, 5};
  EXPECT_EQ(answers.worst(children, {9}), std::nullopt);
  answers.note(3, {7});
  EXPECT_EQ(answers.worst(children, {9}), std::nullopt);
  EXPECT_EQ(answers.missing(children), std::vector{5});
  answers.note(5, {8});
  EXPECT_EQ(answers.worst(children, {9})->value, 7U);
  EXPECT_EQ(answers.worst(children, {6})->value, 6U);
  answers.note(3, {20});
  answers.note(3, {10});
  EXPECT_EQ(answers.worst(children, {30})->value, 8U);
  EXPECT_EQ(answers.worst(std::vector{3}, {30})->value, 20U) << "a late answer does not go back";
  answers.clear();
  EXPECT_EQ(answers.worst({}, {4})->value, 4U);
  EXPECT_EQ(answers.missing(children), children);
}

TEST(Answers, OneThatPassesOverALostMemberIsOneOfAll) {
  Answers answers;
  const std::vector<int> children{3, 5};
  answers.note(3, {7, true});
  answers.note(5, {6});
  EXPECT_EQ(answers.worst(children, {9}), (Answers::Answer{6, true}));
  EXPECT_EQ(answers.worst(std::vector{5}, {9}), (Answers::Answer{6, false}));
  EXPECT_EQ(answers.worst(std::vector{5}, {9, true}), (Answers::Answer{6, true}));
  answers.note(3, {8});
  EXPECT_EQ(answers.worst(std::vector{3}, {9}), (Answers::Answer{8, true})) << "the loss stays";
}

TEST(MulticastWatch, IsLostAfterManyOccasionsInARow) {
  MulticastWatch watch;
  constexpr std::int64_t kApart = 100;
  std::int64_t now = 0;
  for (int i = 1; i < MulticastWatch::kMostMissed; ++i) {
    EXPECT_FALSE(watch.note_unicast(now += kApart, kApart));
    EXPECT_FALSE(watch.note_unicast(now + kApart - 1, kApart)) << "the same occasion";
  }
  watch.note_multicast();
  for (int i = 1; i < MulticastWatch::kMostMissed; ++i) {
    EXPECT_FALSE(watch.note_unicast(now += kApart, kApart));
  }
  EXPECT_FALSE(watch.is_lost());
  EXPECT_TRUE(watch.note_unicast(now += kApart, kApart));
  EXPECT_FALSE(watch.note_unicast(now + kApart, kApart)) << "once";
  watch.note_multicast();
  EXPECT_TRUE(watch.is_lost()) << "for the rest of the job";
}

TEST(KeptPackets, KeepsTheLastOnes) {
  KeptPackets kept(2, 8);
  EXPECT_EQ(kept.find(1), nullptr);
  wire::Header header{};
  for (unsigned number = 1; number <= 3; ++number) {
    header.sequence = number;
    const std::array payload{static_cast<std::byte>(number)};
    kept.keep(header, payload, 10 * number);
  }
  EXPECT_EQ(kept.find(1), nullptr) << "its place was used again";
  for (unsigned number = 2; number <= 3; ++number) {
    const KeptPackets::Packet* const packet = kept.find(number);
    ASSERT_NE(packet, nullptr);
    EXPECT_EQ(packet->sent_ns[0], 10 * number);
    ASSERT_EQ(kept.payload(*packet).size(), 1U);
    EXPECT_EQ(kept.payload(*packet)[0], static_cast<std::byte>(number));
  }
}

}  // namespace
}  // namespace unisono::reliable::repair_parts_test
