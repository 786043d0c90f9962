// SPDX-License-Identifier: BSD-3-Clause
// Paths that carry less than a full datagram, in one direction or both, and directions that carry
// nothing: what gets through, how soon, and who counts as lost.
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "reliable/trouble.hpp"
#include "unit/reliable/ranks.hpp"

namespace unisono::reliable::narrow_test {
namespace {

using transport::kGroup;

constexpr std::size_t kFull = 1400;    // bytes that fill a packet
constexpr std::size_t kNarrow = 1272;  // of a datagram: an MTU of 1300
constexpr std::int64_t kSecond = 1000 * kMillisecond;

// The reports that ranks got of their paths.
using Notes = std::vector<std::pair<int, std::size_t>>;

ReliableOptions noting(Notes& notes) {
  ReliableOptions options;
  options.narrowed = [&notes](int rank, std::size_t bytes) { notes.emplace_back(rank, bytes); };
  return options;
}

transport::VirtualDatagramOptions with_multicast() {
  transport::VirtualDatagramOptions options = steady();
  options.multicast = true;
  return options;
}

// A message of so many bytes from 0 to 1, who waits for it.
bool passes(Ranks& ranks, std::size_t bytes, std::uint64_t value, std::int64_t within_ns) {
  const auto sent = pattern(bytes, static_cast<unsigned>(value));
  ranks.put(0, 1, sent, 512, kFlag, value);
  return ranks.run_until(
             ranks.network().now_ns() + within_ns, [&] { return ranks.word(1) == value; },
             [&] { ranks.at(1).awaits(0); }) &&
         std::equal(sent.begin(), sent.end(), ranks.region(1) + 512);
}

TEST(NarrowPath, FullPacketsPassInPiecesAndThenShorter) {
  Notes notes;
  Ranks ranks(2, steady(), noting(notes));
  ranks.network().narrow(0, 1, kNarrow);
  EXPECT_TRUE(passes(ranks, kFull, 1, 10 * kMillisecond)) << "found as soon as rank 1 asks";
  EXPECT_EQ(notes, (Notes{{1, 1232}}));
  EXPECT_EQ(ranks.at(0).counts().pieces, 2U);
  const auto before = ranks.at(0).counts();
  for (std::uint64_t i = 2; i < 100; ++i) EXPECT_TRUE(passes(ranks, kFull, i, kMillisecond));
  EXPECT_EQ(ranks.at(0).counts().repeated, before.repeated);
  EXPECT_EQ(ranks.at(0).counts().pieces, before.pieces);
  EXPECT_NE(trouble_text(ranks.at(0)).find("2 pieces"), std::string::npos);
}

// At the start of a job, so that its first operation need not wait for it.
TEST(NarrowPath, ProbesFindItBeforeTheFirstPacket) {
  Notes notes;
  Ranks ranks(2, steady(), noting(notes));
  ranks.network().narrow(0, 1, kNarrow);
  ranks.at(0).probe_path(1);
  ranks.run_for(10 * kMillisecond);
  EXPECT_EQ(notes, (Notes{{1, 1232}}));
  EXPECT_TRUE(passes(ranks, kFull, 1, 2 * kDelayNs));
  EXPECT_EQ(ranks.at(0).counts().repeated, 0U);
}

TEST(NarrowPath, ProbesOfAPathThatCarriesAllAreThreePackets) {
  Notes notes;
  Ranks ranks(2, steady(), noting(notes));
  ranks.at(0).probe_path(1);
  ranks.run_for(kSecond);
  EXPECT_EQ(ranks.network().sent(), 3) << "a probe, a question, an answer";
  EXPECT_EQ(notes, Notes{});
}

TEST(NarrowPath, OneSearchIsEnoughForAllRanksOfAHost) {
  Notes notes;
  ReliableOptions options = noting(notes);
  options.hosts = topology::HostMap::of_labels(std::vector{0, 1, 1});
  Ranks ranks(3, steady(), options);
  ranks.network().narrow(0, 1, kNarrow);
  ranks.network().narrow(0, 2, kNarrow);
  EXPECT_TRUE(passes(ranks, kFull, 1, kSecond));
  ranks.put(0, 2, pattern(kFull), 512, kFlag, 1);
  ranks.run_for(2 * kDelayNs);
  EXPECT_EQ(ranks.word(2), 1U);
  EXPECT_EQ(notes, (Notes{{1, 1232}}));
}

// A window of packets and a backlog were sealed before anybody knew.
TEST(NarrowPath, WhatWasPutBeforePasses) {
  Notes notes;
  ReliableOptions options = noting(notes);
  options.pool_packets = 8;
  Ranks ranks(2, steady(), options);
  ranks.network().narrow(0, 1, kNarrow);
  EXPECT_TRUE(passes(ranks, 40 * kFull, 1, 10 * kSecond));
  EXPECT_TRUE(passes(ranks, 40 * kFull, 2, 10 * kSecond));
  EXPECT_EQ(notes, (Notes{{1, 1232}}));
}

TEST(NarrowPath, EvenIfItIsNarrowerThanIpv6Allows) {
  Notes notes;
  Ranks ranks(2, steady(), noting(notes));
  ranks.network().narrow(0, 1, 576);
  EXPECT_TRUE(passes(ranks, 3 * kFull, 1, 5 * kSecond));
  EXPECT_EQ(notes, (Notes{{1, 508}}));
}

TEST(NarrowPath, OfOneDirectionAlone) {
  Notes notes;
  Ranks ranks(2, steady(), noting(notes));
  ranks.network().narrow_one_way(1, 0, kNarrow);
  EXPECT_TRUE(passes(ranks, kFull, 1, 2 * kDelayNs));
  EXPECT_EQ(notes, Notes{});
}

// The loss of a tenth of all packets need not lead to any conclusion.
TEST(NarrowPath, LossIsNotTakenForOne) {
  Notes notes;
  auto network = steady();
  network.loss = 0.05;
  Ranks ranks(2, network, noting(notes));
  for (std::uint64_t i = 1; i <= 300; ++i) EXPECT_TRUE(passes(ranks, 2 * kFull, i, 10 * kSecond));
  EXPECT_EQ(notes, Notes{});
  EXPECT_GT(ranks.at(0).counts().repeated, 10U);
}

// While full packets vanish, who asks for them hears of the one who repeats them.
TEST(NarrowPath, WhoRepeatsInVainIsNotSilent) {
  Ranks ranks(2);
  ranks.network().narrow(0, 1, kNarrow);
  const auto sent = pattern(kFull);
  ranks.put(0, 1, sent, 512, kFlag, 1);
  ranks.run_until(
      kSecond, [&] { return ranks.word(1) == 1; },
      [&] {
        ranks.at(1).awaits(0);
        EXPECT_LT(ranks.at(1).silence_ns(0), 60 * kMillisecond);
      });
  EXPECT_EQ(ranks.word(1), 1U);
}

// Nothing comes to rank 1, which asks, while rank 0 hears that: rank 1 knows that it is cut off.
TEST(NarrowPath, ADirectionThatCarriesNothingIsSilence) {
  Notes notes;
  Ranks ranks(2, steady(), noting(notes));
  ranks.network().cut_one_way(0, 1);
  EXPECT_FALSE(passes(ranks, kFull, 1, kSecond));
  EXPECT_GT(ranks.at(1).silence_ns(0), 500 * kMillisecond);
  EXPECT_EQ(notes, Notes{}) << "nothing tells length from loss";
}

// Statuses pass, and nothing that has a payload: no answer but that the peer is out of reach.
TEST(NarrowPath, APeerToWhomNothingButStatusesPassIsLost) {
  Notes notes;
  Ranks ranks(2, steady(), noting(notes));
  ranks.network().narrow(0, 1, 72);
  EXPECT_FALSE(passes(ranks, kFull, 1, 60 * kSecond));
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(notes.back(), std::pair(1, std::size_t{0}));
  EXPECT_EQ(ranks.at(0).silence_ns(1), std::numeric_limits<std::int64_t>::max());
}

// ---- multicast ---------------------------------------------------------------------------------

class Multicasters : public Ranks {
 public:
  Multicasters(int ranks, const ReliableOptions& options)
      : Ranks(ranks, with_multicast(), options) {}

  bool passes_to_all(int from, std::size_t bytes, std::uint64_t value, std::int64_t within_ns) {
    const auto sent = pattern(bytes, static_cast<unsigned>(value));
    at(from).put_to_all({.source = sent.data(),
                         .place = region(from) + 512,
                         .bytes = bytes,
                         .flag = reinterpret_cast<std::uint64_t*>(region(from) + kFlag),
                         .flag_value = value});
    const auto all_have = [&] {
      for (int rank = 0; rank < size(); ++rank) {
        if (rank != from && word(rank) != value) return false;
      }
      return true;
    };
    const auto wait = [&] {
      for (int rank = 0; rank < size(); ++rank) at(rank).awaits_multicast(from);
    };
    if (!run_until(network().now_ns() + within_ns, all_have, wait)) return false;
    for (int rank = 0; rank < size(); ++rank) {
      if (rank != from && !std::equal(sent.begin(), sent.end(), region(rank) + 512)) return false;
    }
    return true;
  }
};

ReliableOptions with_arity(int arity, ReliableOptions options) {
  options.repair_arity = arity;
  return options;
}

// Rank 5's link is narrow. Its parent in the repair tree finds out, and tells the origin, who then
// makes shorter packets.
TEST(NarrowPath, MulticastsBecomeShorter) {
  for (const int arity : {1, 2, 8}) {
    Notes notes;
    Multicasters ranks(6, with_arity(arity, noting(notes)));
    for (int rank = 0; rank < 5; ++rank) ranks.network().narrow(rank, 5, kNarrow);
    EXPECT_TRUE(ranks.passes_to_all(0, 3 * kFull, 1, 5 * kSecond)) << arity;
    ranks.run_for(10 * kMillisecond);
    EXPECT_NE(std::ranges::find(notes, std::pair(kGroup, std::size_t{1232})), notes.end());
    const std::uint64_t repaired = ranks.at(0).group().counts().repaired;
    for (std::uint64_t i = 2; i < 50; ++i) {
      EXPECT_TRUE(ranks.passes_to_all(0, 3 * kFull, i, kMillisecond)) << arity;
    }
    EXPECT_EQ(ranks.at(0).group().counts().repaired, repaired);
  }
}

// Rank 0 knows its path to rank 5 before it multicasts.
TEST(NarrowPath, MulticastsAreShortFromTheFirstAfterAProbe) {
  Notes notes;
  Multicasters ranks(6, noting(notes));
  for (int rank = 0; rank < 5; ++rank) ranks.network().narrow(rank, 5, kNarrow);
  ranks.at(0).probe_path(5);
  ranks.run_for(10 * kMillisecond);
  EXPECT_TRUE(ranks.passes_to_all(0, 3 * kFull, 1, 2 * kDelayNs));
  EXPECT_EQ(ranks.at(0).group().counts().repaired, 0U);
}

// Each origin finds out for itself.
TEST(NarrowPath, MulticastsOfAllOrigins) {
  Notes notes;
  Multicasters ranks(6, with_arity(2, noting(notes)));
  for (int rank = 0; rank < 5; ++rank) ranks.network().narrow(rank, 5, kNarrow);
  std::uint64_t value = 0;
  for (int round = 0; round < 3; ++round) {
    for (int from = 0; from < 6; ++from) {
      EXPECT_TRUE(ranks.passes_to_all(from, 2 * kFull, ++value, 5 * kSecond)) << from;
    }
  }
}

// More than the window: what waited for room is cut when it leaves.
TEST(NarrowPath, MulticastsThatWaited) {
  Notes notes;
  Multicasters ranks(4, with_arity(2, noting(notes)));
  for (int rank = 0; rank < 3; ++rank) ranks.network().narrow(rank, 3, kNarrow);
  for (int i = 0; i < 9; ++i) {
    EXPECT_TRUE(
        ranks.passes_to_all(0, 40 * kFull, static_cast<std::uint64_t>(i + 1), 30 * kSecond));
  }
}

}  // namespace
}  // namespace unisono::reliable::narrow_test
