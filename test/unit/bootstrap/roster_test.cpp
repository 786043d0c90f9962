// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/roster.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/clock.hpp"
#include "unit/bootstrap/raw_rank.hpp"

namespace unisono::bootstrap::roster_test {
namespace {

using test::hello_from;
using test::host_of;

JoinedRank rank_on(char host, std::uint32_t rank, Acceptor::ConnectionId connection) {
  return {.hello = hello_from(host_of(host), rank, 8), .connection = connection, .origin = "here"};
}

TEST(Roster, KnowsWhichRanksHaveJoined) {
  Roster roster(2);
  EXPECT_FALSE(roster.has_joined(0) || roster.has_joined(1) || roster.is_complete());
  roster.add(rank_on('x', 1, 7));
  EXPECT_TRUE(roster.has_joined(1) && !roster.has_joined(0));
  roster.add(rank_on('x', 0, 8));
  EXPECT_TRUE(roster.is_complete());
  EXPECT_EQ(roster.joined(), 2);
}

TEST(Roster, TheFirstRankOfAnotherHostIsItsRelay) {
  Roster roster(8);
  JoinedRank local = rank_on('s', 0, 1);
  local.pid = 100;
  roster.add(local);
  EXPECT_EQ(roster.relay_of(host_of('s')), nullptr);
  roster.add(rank_on('x', 3, 2));
  JoinedRank relayed = rank_on('x', 1, 2);
  relayed.via_relay = true;
  roster.add(relayed);
  ASSERT_NE(roster.relay_of(host_of('x')), nullptr);
  EXPECT_EQ(roster.relay_of(host_of('x'))->hello.rank, 3U);
  EXPECT_TRUE(roster.has_local_rank());
}

TEST(Roster, AConnectionIsOfItsOwnRankAndARelayedOneIsFoundByItsHello) {
  Roster roster(8);
  roster.add(rank_on('x', 3, 2));
  JoinedRank relayed = rank_on('x', 1, 2);
  relayed.via_relay = true;
  roster.add(relayed);
  EXPECT_EQ(roster.find(2)->hello.rank, 3U);
  EXPECT_EQ(roster.find(2, relayed.hello.nonce)->hello.rank, 1U);
  EXPECT_EQ(roster.find(9), nullptr);
  EXPECT_EQ(roster.find(9, relayed.hello.nonce), nullptr);
  EXPECT_EQ(roster.find(2, *random_nonce()), nullptr);
}

TEST(Roster, NamesTheMissingRanksAndASecondProcess) {
  Roster roster(8);
  for (const std::uint32_t rank : {0U, 4U, 6U}) roster.add(rank_on('x', rank, rank + 1));
  EXPECT_EQ(roster.missing_text(base::kSecond),
            "5 of 8 ranks did not join within 1s (UNISONO_START_TIMEOUT): missing ranks 1-3, 5, 7");
  const base::Error twice = roster.claimed_twice(4, "pid 12");
  EXPECT_EQ(twice.code, base::Code::argument);
  EXPECT_EQ(twice.message,
            "rank 4 was claimed twice: by here, which keeps it, and by pid 12; each rank joins "
            "once");
  EXPECT_TRUE(roster.missing_text(base::kSecond).ends_with("; " + twice.message));
}

TEST(Roster, BoundsTheTextOfSecondProcesses) {
  Roster roster(8);
  roster.add(rank_on('x', 0, 1));
  for (int i = 0; i < 1000; ++i) roster.claimed_twice(0, "pid 12");
  EXPECT_LT(roster.missing_text(base::kSecond).size(), 2048U);
}

}  // namespace
}  // namespace unisono::bootstrap::roster_test
