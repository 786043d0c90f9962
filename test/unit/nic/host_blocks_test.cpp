// SPDX-License-Identifier: BSD-3-Clause
// The ranks of a host that write one block together: exactly one is the last at each operation, in
// any order and however many operations they are apart, and a rank whose call differs is found.
#include "nic/port/host_blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "nic/port/vector_limit.hpp"
#include "nic/program/tables.h"

namespace unisono::nic::test::host_blocks_test {
namespace {

class Host {
 public:
  explicit Host(int ranks) {
    const auto bytes = static_cast<std::size_t>(HostBlocks::memory_bytes(ranks));
    memory_.resize(bytes + 64);
    void* start = memory_.data();
    std::size_t room = memory_.size();
    auto* const aligned = static_cast<std::byte*>(std::align(64, bytes, start, room));
    for (int place = 0; place < ranks; ++place) ranks_.emplace_back(aligned, place, ranks);
  }
  HostBlocks& at(int place) { return ranks_[static_cast<std::size_t>(place)]; }

 private:
  std::vector<std::byte> memory_;
  std::vector<HostBlocks> ranks_;
};

TEST(HostBlocks, TheLastToArriveIsTold) {
  Host host(3);
  std::array<int, 3> order = {0, 1, 2};
  std::uint64_t sequence = 0;
  for (int round = 0; round < 20; ++round) {
    do {
      EXPECT_FALSE(host.at(order[0]).arrive(sequence));
      EXPECT_FALSE(host.at(order[1]).arrive(sequence));
      EXPECT_FALSE(host.at(0).is_complete(sequence));
      EXPECT_TRUE(host.at(order[2]).arrive(sequence));
      EXPECT_TRUE(host.at(0).is_complete(sequence));
      EXPECT_FALSE(host.at(0).is_complete(sequence + 1));
      ++sequence;
    } while (std::ranges::next_permutation(order).found);
  }
}

TEST(HostBlocks, RanksMayBeADepthApart) {
  constexpr std::uint64_t kDepth = UNISONO_NIC_DEPTH_MAX / 2;
  Host host(2);
  for (std::uint64_t first = 0; first < 10 * kDepth; first += kDepth) {
    for (std::uint64_t i = 0; i < kDepth; ++i) EXPECT_FALSE(host.at(0).arrive(first + i));
    for (std::uint64_t i = 0; i < kDepth; ++i) EXPECT_TRUE(host.at(1).arrive(first + i));
  }
}

TEST(HostBlocks, OneOfManyIsTheLast) {
  constexpr int kRanks = 4;
  constexpr std::uint64_t kOperations = 2000;
  Host host(kRanks);
  std::atomic<std::uint64_t> complete = 0;  // of the operations, each by its last rank
  std::vector<std::thread> ranks;
  for (int place = 0; place < kRanks; ++place) {
    ranks.emplace_back([&host, &complete, place] {
      for (std::uint64_t operation = 0; operation < kOperations; ++operation) {
        while (complete + UNISONO_NIC_DEPTH_MAX / 2 <= operation) std::this_thread::yield();
        if (host.at(place).arrive(operation)) ++complete;
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(complete, kOperations);
}

TEST(HostBlocks, ARankWhoseCallDiffersIsFound) {
  Host host(3);
  for (int place = 0; place < 3; ++place) host.at(place).begin(0, 7, 100);
  EXPECT_EQ(host.at(1).mismatching_place(0), std::nullopt);
  host.at(2).begin(0, 7, 101);
  EXPECT_EQ(host.at(0).mismatching_place(0), 2);
  EXPECT_EQ(host.at(2).mismatching_place(0), 0);
  host.at(2).begin(0, 8, 100);
  EXPECT_EQ(host.at(1).mismatching_place(0), 2);
}

TEST(HostBlocks, CallsInFlightAreComparedSeparately) {
  Host host(2);
  for (std::uint64_t call = 0; call < kInFlightMax; ++call) {
    host.at(0).begin(call, 7, 100 + call);
    host.at(1).begin(call, 7, call == 2 ? 1 : 100 + call);
  }
  for (std::uint64_t call = 0; call < kInFlightMax; ++call) {
    EXPECT_EQ(host.at(0).mismatching_place(call).has_value(), call == 2) << call;
  }
  host.at(1).begin(kInFlightMax + 2, 7, 5);
  host.at(0).begin(kInFlightMax + 2, 7, 5);
  EXPECT_EQ(host.at(0).mismatching_place(kInFlightMax + 2), std::nullopt);
}

}  // namespace
}  // namespace unisono::nic::test::host_blocks_test
