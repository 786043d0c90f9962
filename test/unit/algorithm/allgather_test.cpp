// SPDX-License-Identifier: BSD-3-Clause
// Checks the peers and numbers of messages that the sources state against the schedules of the
// allgathers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "unit/algorithm/schedule_set.hpp"

namespace unisono::algorithm::test::allgather_test {
namespace {

constexpr int kMostRanks = 70;

std::vector<Schedule> allgather(std::string_view name, int ranks, Parameters parameters = {}) {
  const Algorithm* row = find(Collective::allgather, name);
  if (row == nullptr) {
    ADD_FAILURE() << "no allgather " << name;
    return {};
  }
  const Shape shape{.collective = Collective::allgather, .ranks = ranks, .count = 1};
  return build_set(*row, shape, parameters);
}

// Whom a rank sends to, message by message.
std::vector<int> peers(const Schedule& schedule) {
  std::vector<int> result;
  for (const schedule::Op& op : schedule.ops) {
    for (const schedule::Target& target : schedule.targets_of(op)) result.push_back(target.peer);
  }
  return result;
}

int messages(const Schedule& schedule) {
  return static_cast<int>(std::ranges::count_if(
      schedule.ops, [](const schedule::Op& op) { return op.target_count > 0; }));
}

// Yu, Buntinas and Panda, 4.1: a node knows its peers at +-2^j, two for each j < log2 P.
TEST(ConcurrentBroadcast, KnowsPeersAtPowersOfTwoOnly) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    std::set<int> distances;
    for (int distance = 1; distance < ranks; distance *= 2) distances.insert(distance);
    for (const Schedule& schedule : allgather("concurrent-broadcast", ranks)) {
      for (const int peer : peers(schedule)) {
        ASSERT_TRUE(distances.contains((peer - schedule.rank + ranks) % ranks)) << ranks;
      }
      for (const schedule::Slot& slot : schedule.slots) {
        ASSERT_TRUE(distances.contains((schedule.rank - slot.source + ranks) % ranks)) << ranks;
      }
      // Every block but the own one comes in once.
      ASSERT_EQ(static_cast<int>(schedule.slots.size()), ranks - 1);
    }
  }
}

// Kumar and Kalé, 3.1: about 2 sqrt(P) messages a rank, in two multicasts.
TEST(Mesh2d, SendsAboutTwiceTheRootOfP) {
  for (int ranks = 1; ranks <= 200; ++ranks) {
    int side = 1;
    while (side * side < ranks) ++side;
    for (const Schedule& schedule : allgather("mesh2d", ranks)) {
      const int sent = static_cast<int>(peers(schedule).size());
      ASSERT_LE(sent, 2 * (side - 1)) << ranks;
      ASSERT_GE(sent, 2 * (side - 1) - 2) << ranks;
      ASSERT_LE(messages(schedule), 2);
    }
  }
}

// Kumar and Kalé, 4.3: rank xor i, in the order of i.
TEST(PrefixSend, MeetsItsPrefixNeighboursInTurn) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (const Schedule& schedule : allgather("prefix-send", ranks)) {
      std::vector<int> expected;
      for (int i = 1; i < 2 * ranks; ++i) {
        const int peer = schedule.rank ^ i;
        if (peer < ranks) expected.push_back(peer);
      }
      ASSERT_EQ(peers(schedule), expected) << ranks;
    }
  }
}

// Kumar and Kalé, 4.4: k - 1 steps in the partition, then one to the rank k above.
TEST(KPrefix, LeavesThePartitionOnceARound) {
  for (const int k : {1, 2, 4, 8}) {
    for (int ranks = k; ranks <= kMostRanks; ranks += k) {
      for (const Schedule& schedule : allgather("kprefix", ranks, {{k, 1}})) {
        std::vector<int> expected;
        for (int step = 1; step < ranks; ++step) {
          const int i = step % k;
          expected.push_back(i != 0 ? schedule.rank ^ i : (schedule.rank + k) % ranks);
        }
        ASSERT_EQ(peers(schedule), expected) << k << " of " << ranks;
        ASSERT_EQ(messages(schedule), ranks - 1);
      }
    }
  }
}

// Kumar and Kalé, 4.5, where k divides P.
TEST(KShift, ReachesTheNearestAndThenGoesOn) {
  for (const int k : {1, 2, 3, 4, 8}) {
    for (int ranks = k; ranks <= kMostRanks; ranks += k) {
      for (const Schedule& schedule : allgather("kshift", ranks, {{k, 1}})) {
        std::vector<int> expected;
        for (int round = 0; round < ranks / k; ++round) {
          for (int step = -(k / 2); step <= (k - 1) / 2; ++step) {
            if (step != 0) expected.push_back((schedule.rank + step + ranks) % ranks);
          }
          if (round + 1 < ranks / k) expected.push_back((schedule.rank + k) % ranks);
        }
        ASSERT_EQ(peers(schedule), expected) << k << " of " << ranks;
      }
    }
  }
}

// Any other P: as many messages, and none goes further than k.
TEST(KShift, NeverGoesFurtherThanK) {
  for (const int k : {1, 2, 3, 4, 8}) {
    for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
      for (const Schedule& schedule : allgather("kshift", ranks, {{k, 1}})) {
        const std::vector<int> all = peers(schedule);
        ASSERT_EQ(static_cast<int>(all.size()), ranks - 1);
        for (const int peer : all) {
          const int up = (peer - schedule.rank + ranks) % ranks;
          ASSERT_LE(std::min(up, ranks - up), k) << k << " of " << ranks;
        }
      }
    }
  }
}

// Kumar and Kalé, 4.6: k messages between two synchronisations are one, staged once.
TEST(LessBarriers, StageABatchOnce) {
  for (const std::string_view name : {"kprefix", "kshift"}) {
    for (const int k : {1, 2, 4, 8}) {
      for (const int rounds : {1, 2, 5}) {
        for (const Schedule& schedule : allgather(name, k * rounds, {{k, k}})) {
          ASSERT_EQ(messages(schedule), k == 1 ? rounds - 1 : rounds) << name << " " << k;
          ASSERT_EQ(static_cast<int>(peers(schedule).size()), k * rounds - 1);
        }
      }
    }
  }
}

TEST(NeighborExchange, TalksToItsNeighboursOnly) {
  for (int ranks = 2; ranks <= kMostRanks; ranks += 2) {
    for (const Schedule& schedule : allgather("neighbor-exchange", ranks)) {
      for (const int peer : peers(schedule)) {
        const int distance = std::abs(peer - schedule.rank);
        ASSERT_TRUE(distance == 1 || distance == ranks - 1) << ranks;
      }
      ASSERT_EQ(messages(schedule), ranks / 2);
    }
  }
}

}  // namespace
}  // namespace unisono::algorithm::test::allgather_test
