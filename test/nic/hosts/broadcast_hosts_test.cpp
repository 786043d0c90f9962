// SPDX-License-Identifier: BSD-3-Clause
// Broadcasts end to end whose roots multicast their blocks, by the ports of allgathers, with and
// without losses. Every rank is the root in turn. The test's barrier takes the place of the
// operations that acknowledge blocks.
#include <utility>

#include "harness/scale.hpp"
#include "nic/hosts/allgather_hosts.hpp"

namespace unisono::nic::test::broadcast_hosts_test {
namespace {

class NicBroadcasts : public AllgatherHosts {
 protected:
  static constexpr std::uint32_t kDepth = 8;
  static constexpr std::uint32_t kMark = 0x17'00;

  static void start(AllgatherPort& port, int root, const Bytes& block) {
    ASSERT_TRUE(port.expect_only(root, kMark));
    if (root == port.rank()) {
      ASSERT_TRUE(port.post(block, kMark).ok());
    } else {
      port.follow();
    }
  }
  static void await(AllgatherPort& port, std::uint64_t operation, base::Prng& random) {
    for (double patience_ns = base::kMillisecond; !port.is_done(operation);) {
      const auto delay_ns = static_cast<std::int64_t>(patience_ns * (0.5 + random.unit()));
      const auto asked = port.repair(base::now_ns(), delay_ns);
      ASSERT_TRUE(asked.ok()) << asked.error().message;
      if (*asked > 0) patience_ns = std::min(patience_ns * 2, 8.0 * base::kMillisecond);
      std::this_thread::yield();
    }
  }

  // Roots in turn. A rank gets as far ahead as its group has slots, and all others may lag.
  Counters broadcast_all(const Allgather& job) {
    SCOPED_TRACE(std::to_string(job.ranks) + " ranks, " + std::to_string(job.bytes) + " bytes");
    return with_ports(job, [&](int rank, AllgatherPort& port, std::barrier<>& together) {
      base::Prng random(static_cast<std::uint64_t>(rank) + 1);
      int wrong = 0;
      for (int operation = 0; operation < job.operations; ++operation) {
        if (operation % (2 * kDepth) == 0) together.arrive_and_wait();  // all have read all
        const int root = operation % job.ranks;
        const Bytes block = block_of(job, root, operation);
        if (random.below(8) == 0) std::this_thread::yield();
        start(port, root, block);
        const auto number = static_cast<std::uint64_t>(operation);
        await(port, number, random);
        const auto came = port.block(number, root);
        wrong += came.size() != (block.size() + 7) / 8 * 8 || port.mark(number, root) != kMark ||
                 std::memcmp(came.data(), block.data(), block.size()) != 0;
      }
      EXPECT_EQ(wrong, 0) << "rank " << rank;
    });
  }
};

TEST_F(NicBroadcasts, OnePacketForEachWithoutLosses) {
  Allgather job;
  job.algorithm = "direct";
  job.depth = kDepth;
  job.operations = 100;
  for (job.ranks = 2; job.ranks <= kMostHosts; ++job.ranks) {
    for (const std::size_t bytes : {1, 8, 1400}) {
      job.bytes = bytes;
      const Counters counted = broadcast_all(job);
      const auto operations = static_cast<std::uint64_t>(job.operations);
      EXPECT_EQ(counted[UNISONO_NIC_BLOCK_SENT], operations);
      EXPECT_EQ(counted[UNISONO_NIC_BLOCK_TAKEN],
                operations * static_cast<std::uint64_t>(job.ranks - 1));
    }
  }
}

// Programs forward them where the network carries no multicast.
TEST_F(NicBroadcasts, AlsoFromHostToHost) {
  Allgather job;
  job.multicasts = false;
  job.depth = kDepth;
  job.operations = 100;
  for (job.ranks = 2; job.ranks <= kMostHosts; job.ranks += 3) {
    const Counters counted = broadcast_all(job);
    EXPECT_EQ(counted[UNISONO_NIC_BLOCK_TAKEN],
              static_cast<std::uint64_t>(job.operations * (job.ranks - 1)));
  }
}

TEST_F(NicBroadcasts, WhatIsLostIsAskedFor) {
  Allgather job;
  job.depth = kDepth;
  job.operations = static_cast<int>(harness::scaled(300));
  for (const char* algorithm : {"direct", "concurrent-broadcast"}) {
    job.algorithm = algorithm;
    job.multicasts = job.algorithm == std::string("direct");
    for (const auto& [ranks, bytes] : {std::pair(2, 8), {4, 1400}, {9, 100}}) {
      job.ranks = ranks;
      job.bytes = static_cast<std::size_t>(bytes);
      std::uint64_t lost = 0;
      std::uint64_t answered = 0;
      for (const double loss : {0.01, 0.1, 0.3}) {  // the least may lose none of so few packets
        job.loss = loss;
        const Counters counted = broadcast_all(job);
        lost += counted[UNISONO_NIC_LOST];
        answered += counted[UNISONO_NIC_ANSWERED];
      }
      EXPECT_GT(lost, 0U);
      EXPECT_GT(answered, 0U);
    }
  }
}

// The block waits for a process that has not called.
TEST_F(NicBroadcasts, ALateRankFindsTheBlock) {
  Allgather job;
  job.algorithm = "direct";
  job.depth = kDepth;
  with_ports(job, [&](int rank, AllgatherPort& port, std::barrier<>& together) {
    base::Prng random(1);
    for (int operation = 0; operation < 5; ++operation) {
      const Bytes block = block_of(job, 2, operation);
      if (rank == 2) start(port, 2, block);
      if (rank == 2) {
        EXPECT_TRUE(port.is_done(static_cast<std::uint64_t>(operation))) << "it waits for nobody";
      }
      together.arrive_and_wait();
      if (rank == 2) continue;
      start(port, 2, block);
      await(port, static_cast<std::uint64_t>(operation), random);
      EXPECT_EQ(std::memcmp(port.block(static_cast<std::uint64_t>(operation), 2).data(),
                            block.data(), block.size()),
                0);
    }
  });
}

// Ranks 1 and 2 take each other for the root. Each asks the other for its block, and gets one that
// is of no length, or of another call.
TEST_F(NicBroadcasts, RanksThatExpectOtherRootsSeeThat) {
  Allgather job;
  job.algorithm = "direct";
  job.depth = kDepth;
  job.ranks = 3;
  with_ports(job, [&](int rank, AllgatherPort& port, std::barrier<>& together) {
    base::Prng random(1);
    const int root = rank == 0 ? 0 : 3 - rank;
    const auto mark = static_cast<std::uint32_t>(root + 1) << UNISONO_NIC_COMBINE_BITS;
    ASSERT_TRUE(port.expect_only(root, mark));
    EXPECT_FALSE(port.expect_only(root, mark)) << "only the first process of a host does that";
    if (rank == 0) {
      EXPECT_TRUE(port.post({}, mark).ok());
    } else {
      port.follow();
    }
    together.arrive_and_wait();
    await(port, 0, random);
    EXPECT_EQ(port.mark(0, root) == mark, rank == 0);
  });
}

}  // namespace
}  // namespace unisono::nic::test::broadcast_hosts_test
