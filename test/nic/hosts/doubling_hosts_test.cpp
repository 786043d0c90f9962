// SPDX-License-Identifier: BSD-3-Clause
// Allgathers end to end whose blocks are joined to messages that double. Every result has the bits
// of the host engine's on the same schedule, and without losses exactly its packets are sent: P
// times log2 P.
#include <bit>

#include "harness/scale.hpp"
#include "nic/hosts/allgather_hosts.hpp"

namespace unisono::nic::test::doubling_hosts_test {
namespace {

class NicDoubling : public AllgatherHosts {
 protected:
  static Allgather bruck() {
    Allgather job;
    job.algorithm = "bruck";
    job.joins = true;
    return job;
  }
};

TEST_F(NicDoubling, ForEveryNumberOfRanks) {
  Allgather job = bruck();
  for (job.ranks = 2; job.ranks <= kMostHosts; ++job.ranks) {
    const unisono_nic_row row = row_of(job, 0);
    EXPECT_EQ(row.gives, std::bit_width(static_cast<unsigned>(job.ranks - 1)));
    const std::size_t most = (UNISONO_NIC_WORDS_MAX / row.largest - 1) * 8;
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{8}, most}) {
      job.bytes = bytes;
      job.operations = bytes == 8 ? 50 : 5;
      run_exactly(job);
    }
  }
}

TEST_F(NicDoubling, ByPartnersThatSwap) {
  Allgather job = bruck();
  job.algorithm = "recursive-doubling";
  job.bytes = 20;
  for (const int ranks : {2, 4, 8, 16}) {
    job.ranks = ranks;
    run_exactly(job);
  }
}

TEST_F(NicDoubling, BlocksOfSeveralPackets) {
  Allgather job = bruck();
  job.operations = 3;
  for (const int ranks : {2, 5, 8}) {
    job.ranks = ranks;
    for (const std::size_t bytes : {1401, 5003}) {
      job.bytes = bytes;
      for (const std::uint32_t depth : {1, 2, UNISONO_NIC_DEPTH_MAX / 2}) {
        job.depth = depth;
        run_exactly(job);
      }
    }
  }
}

// Blocks that arrived before are sent with it, in several messages at once.
TEST_F(NicDoubling, ALateRankCatchesUp) {
  Allgather job = bruck();
  for (const int ranks : {5, 8, 16}) {
    job.ranks = ranks;
    for (const int late : {0, 1, ranks - 1}) {
      job.late = late;
      run_exactly(job);
    }
  }
}

TEST_F(NicDoubling, SurvivesLosses) {
  Allgather job = bruck();
  for (const double loss : {0.001, 0.01, 0.1}) {
    job.loss = loss;
    std::uint64_t lost = 0;
    std::uint64_t answered = 0;
    for (const int ranks : {2, 5, 8, 16}) {
      job.ranks = ranks;
      job.operations =
          static_cast<int>(harness::scaled((ranks > 8 ? 20 : 60) * (loss < 0.01 ? 5 : 1)));
      for (const std::size_t bytes : {8, 100}) {
        job.bytes = bytes;
        const Counters counted = run(job);
        lost += counted[UNISONO_NIC_LOST];
        answered += counted[UNISONO_NIC_ANSWERED];
      }
    }
    EXPECT_GT(lost, 0U) << loss;
    EXPECT_GT(answered, 0U) << loss;
  }
}

TEST_F(NicDoubling, ManyPacketsSurviveLosses) {
  Allgather job = bruck();
  job.operations = 3;
  job.bytes = 10'000;
  job.ranks = 6;
  job.depth = 8;
  job.loss = 0.1;
  const Counters counted = run(job);
  EXPECT_GT(counted[UNISONO_NIC_LOST], 0U);
  EXPECT_GT(counted[UNISONO_NIC_ANSWERED], 0U);
}

// All ranks name the one that called something else, or that it is they.
TEST_F(NicDoubling, BlocksThatDifferAreAMismatchEverywhere) {
  constexpr int kRanks = 5;
  for (const bool by_mark : {false, true}) {
    ++communicator;
    Allgather job = bruck();
    job.ranks = kRanks;
    std::barrier<> together(kRanks);
    hosts->run([&](int rank) {
      if (rank >= kRanks) return;
      const auto index = device_of(rank).add_group(row_of(job, rank));
      EXPECT_TRUE(index.ok());
      together.arrive_and_wait();
      const auto port =
          AllgatherPort::open(device_of(rank).row(*index), device_of(rank).memory(*index));
      EXPECT_TRUE(port.ok());
      AllgatherSegments segments(**port);
      const bool odd = rank == 3;
      const Bytes block(odd && !by_mark ? 20 : 8);
      segments.begin(block, {}, odd && by_mark ? 1 : 0);
      auto done = segments.step();
      for (; done.ok() && !*done; done = segments.step()) std::this_thread::yield();
      EXPECT_FALSE(done.ok());
      const std::string expected =
          by_mark ? "NIC: host 3's block is of another call than that of host "
                  : "NIC: piece 0 of 1 of host 3's block has 24 bytes, and host ";
      if (!done.ok() && !odd) {
        EXPECT_EQ(done.error().message.find(expected), 0U) << done.error().message;
      }
      together.arrive_and_wait();
      EXPECT_TRUE(device_of(rank).remove_group(*index).ok());
    });
  }
}

}  // namespace
}  // namespace unisono::nic::test::doubling_hosts_test
