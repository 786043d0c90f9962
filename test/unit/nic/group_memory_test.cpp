// SPDX-License-Identifier: BSD-3-Clause
// What a rank's NIC keeps of a group, for each kind of group and all numbers of ranks up to 64: the
// ranks that it exchanges packets with, and the bytes of its slots and blocks. Peers grow with the
// logarithm of the ranks. So does a tree's memory; an allgather's has the blocks of all ranks,
// which are its result. The depths are those that the engine asks for (engine/nic).
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "nic/lowering/row.hpp"
#include "nic/memory/group_mapping.hpp"
#include "nic/memory/wake_ring.hpp"
#include "nic/port/vector_limit.hpp"
#include "select/nic/tree_choice.hpp"

namespace unisono::nic::group_memory_test {
namespace {

using schedule::Collective;
using schedule::Schedule;
using schedule::Shape;

constexpr std::uint32_t kJoinedDepth = 2;

int ceil_log2(int ranks) {
  int steps = 0;
  while (1 << steps < ranks) ++steps;
  return steps;
}

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

// A group with addresses of no meaning.
struct Group {
  std::vector<unisono_nic_address> addresses;
  GroupAddresses group;

  Group(int ranks, std::uint32_t depth) : addresses(static_cast<std::size_t>(ranks)) {
    group.ranks = addresses;
    group.depth = depth;
  }
};

Schedule allgather(const char* name, int ranks, int rank) {
  const Shape shape{.collective = Collective::allgather, .ranks = ranks, .count = 1};
  return *algorithm::build(*algorithm::find(shape.collective, name), shape, {}, rank);
}

unisono_nic_row tree_row(int ranks, int rank) {
  const select::NicTrees trees = select::nic_trees(ranks, 0, false);
  const auto node = lower(*algorithm::build(*trees.algorithm, trees.shape, trees.parameters, rank));
  EXPECT_TRUE(node.ok()) << (node.ok() ? "" : node.error().message);
  return *make_row(*node, Group(ranks, kPacketsMax).group);
}

unisono_nic_row single_blocks_row(int ranks, int rank) {
  const auto routes = lower_allgather(allgather("concurrent-broadcast", ranks, rank));
  return *make_row(*routes, Group(ranks, kPacketsMax).group);
}

unisono_nic_row joined_blocks_row(int ranks, int rank) {
  const auto doubling = lower_doubling(allgather("bruck", ranks, rank));
  return *make_row(*doubling, Group(ranks, kJoinedDepth).group);
}

std::set<int> peers_of_tree(int ranks, int rank) {
  const unisono_nic_row row = tree_row(ranks, rank);
  std::set<int> peers;
  for (std::uint32_t child = 0; child < row.children; ++child) {
    peers.insert(static_cast<int>(row.child_rank[child]));
  }
  if ((row.flags & UNISONO_NIC_ROOT) == 0) peers.insert(static_cast<int>(row.parent));
  return peers;
}

std::set<int> peers_of_single_blocks(int ranks, int rank) {
  const unisono_nic_row row = single_blocks_row(ranks, rank);
  std::set<int> peers;
  for (int origin = 0; origin < ranks; ++origin) {
    const unisono_nic_route& route = row.route[origin];
    if (origin != rank) peers.insert(route.from);
    for (int i = 0; i < route.targets; ++i) peers.insert(row.target[route.first + i]);
  }
  return peers;
}

std::set<int> peers_of_joined_blocks(int ranks, int rank) {
  const unisono_nic_row row = joined_blocks_row(ranks, rank);
  std::set<int> peers;
  for (std::uint32_t i = 0; i < row.gives; ++i) peers.insert(row.give[i].peer);
  for (std::uint32_t i = 0; i < row.takes; ++i) peers.insert(row.take[i].peer);
  return peers;
}

// Those 1, 2, 4, ... ranks above and below, cyclically.
std::set<int> at_powers_of_two(int ranks, int rank) {
  std::set<int> peers;
  for (int distance = 1; distance < ranks; distance *= 2) {
    peers.insert((rank + distance) % ranks);
    peers.insert((rank - distance + ranks) % ranks);
  }
  return peers;
}

TEST(GroupMemory, AnAllgathersPeersAreAtPowersOfTwo) {
  for (int ranks = 2; ranks <= UNISONO_NIC_RANKS_MAX; ++ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      const std::set<int> expected = at_powers_of_two(ranks, rank);
      ASSERT_LE(std::ssize(expected), 2 * ceil_log2(ranks));
      ASSERT_EQ(peers_of_single_blocks(ranks, rank), expected) << rank << " of " << ranks;
      ASSERT_EQ(peers_of_joined_blocks(ranks, rank), expected) << rank << " of " << ranks;
    }
  }
}

// Slots and blocks in whole pages, and a ring for a waiter.
std::size_t expected_bytes(const unisono_nic_row& row, std::size_t blocks) {
  return whole_pages(row.depth * sizeof(unisono_nic_slot)) +
         whole_pages(row.depth * blocks * sizeof(unisono_nic_block)) +
         row.waiters * wake_ring_bytes();
}

TEST(GroupMemory, OfATreeGrowsWithTheLogarithmOfTheRanks) {
  for (int ranks = 2; ranks <= UNISONO_NIC_RANKS_MAX; ++ranks) {
    const int children_of_a_level = select::nic_fan_in(ranks);
    int levels = 0;
    for (int reached = 1; reached < ranks; reached *= children_of_a_level + 1) ++levels;
    for (int rank = 0; rank < ranks; ++rank) {
      const unisono_nic_row row = tree_row(ranks, rank);
      ASSERT_EQ(memory_bytes(row), expected_bytes(row, row.children + 1))
          << rank << " of " << ranks;
      ASSERT_LE(static_cast<int>(row.children), children_of_a_level * levels);
      ASSERT_LE(std::ssize(peers_of_tree(ranks, rank)), children_of_a_level * levels + 1);
    }
  }
}

TEST(GroupMemory, OfAnAllgatherHasABlockForEachRank) {
  for (int ranks = 2; ranks <= UNISONO_NIC_RANKS_MAX; ++ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (const unisono_nic_row& row :
           {single_blocks_row(ranks, rank), joined_blocks_row(ranks, rank)}) {
        const auto blocks = static_cast<std::size_t>(ranks);
        ASSERT_EQ(memory_bytes(row), expected_bytes(row, blocks)) << rank << " of " << ranks;
      }
    }
  }
}

// The largest that a daemon accepts (tools/daemon/row_check.cpp).
TEST(GroupMemory, HasABound) {
  unisono_nic_row tree = {};
  tree.depth = UNISONO_NIC_DEPTH_MAX;
  tree.children = UNISONO_NIC_CHILDREN_MAX;
  unisono_nic_row gather = {};
  gather.depth = UNISONO_NIC_DEPTH_MAX;
  gather.ranks = UNISONO_NIC_RANKS_MAX;
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  EXPECT_LT(memory_bytes(tree), 11 * kMiB);
  EXPECT_LT(memory_bytes(gather), 3 * kMiB);
  EXPECT_LT(memory_bytes(single_blocks_row(UNISONO_NIC_RANKS_MAX, 0)), kMiB);
  EXPECT_LT(memory_bytes(joined_blocks_row(UNISONO_NIC_RANKS_MAX, 0)), kMiB / 2);
}

struct Kept {
  std::ptrdiff_t peers = 0;
  std::size_t bytes = 0;  // without the waiters' rings

  std::string text() const {
    return std::to_string(peers) + ", " + std::to_string(bytes / 1024) + " KiB";
  }
};

// The most of any rank.
template <typename MakeRow, typename Peers>
Kept most_kept(int ranks, const MakeRow& make_row_of, const Peers& peers_of) {
  Kept most;
  for (int rank = 0; rank < ranks; ++rank) {
    const unisono_nic_row row = make_row_of(ranks, rank);
    most.bytes = std::max(most.bytes, memory_bytes(row) - row.waiters * wake_ring_bytes());
    most.peers = std::max(most.peers, std::ssize(peers_of(ranks, rank)));
  }
  return most;
}

// The table of docs/explanation/nic-path.md.
TEST(GroupMemory, TwiceTheRanksAreTwoMorePeersOfAnAllgather) {
  std::printf("%-6s %-16s %-16s %-16s\n", "ranks", "tree", "single blocks", "joined blocks");
  std::ptrdiff_t before = -1;
  for (int ranks = 2; ranks <= UNISONO_NIC_RANKS_MAX; ranks *= 2) {
    const Kept tree = most_kept(ranks, tree_row, peers_of_tree);
    const Kept single = most_kept(ranks, single_blocks_row, peers_of_single_blocks);
    const Kept joined = most_kept(ranks, joined_blocks_row, peers_of_joined_blocks);
    EXPECT_EQ(single.peers, before + 2) << ranks;
    EXPECT_EQ(joined.peers, before + 2) << ranks;
    before += 2;
    std::printf("%-6d %-16s %-16s %-16s\n", ranks, tree.text().c_str(), single.text().c_str(),
                joined.text().c_str());
  }
  std::printf("a row: %zu bytes, a slot: %zu, a block: %zu, a waiter's ring: %zu\n",
              sizeof(unisono_nic_row), sizeof(unisono_nic_slot), sizeof(unisono_nic_block),
              wake_ring_bytes());
}

}  // namespace
}  // namespace unisono::nic::group_memory_test
