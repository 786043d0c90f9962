// SPDX-License-Identifier: BSD-3-Clause
// Allgathers end to end whose blocks go singly: hosts forward them, or they are multicast. Every
// result has the bits of the host engine's on the same schedule, and without losses exactly the
// schedule's packets are sent.
#include "nic/hosts/allgather_hosts.hpp"
#include "harness/scale.hpp"
#include "nic/port/doorbell_socket.hpp"

namespace unisono::nic::test::allgather_hosts_test {
namespace {

class NicAllgather : public AllgatherHosts {};

TEST_F(NicAllgather, HopsForEveryNumberOfRanks) {
  Allgather job;
  job.multicasts = false;
  for (job.ranks = 2; job.ranks <= kMostHosts; ++job.ranks) {
    for (const std::size_t bytes : {0, 1, 8, 1400}) {
      job.bytes = bytes;
      job.operations = bytes == 8 ? 50 : 5;
      run_exactly(job);
    }
  }
}

TEST_F(NicAllgather, MulticastsForEveryNumberOfRanks) {
  Allgather job;
  job.algorithm = "direct";
  for (job.ranks = 2; job.ranks <= kMostHosts; ++job.ranks) {
    for (const std::size_t bytes : {0, 3, 1400}) {
      job.bytes = bytes;
      job.operations = 10;
      run_exactly(job);
    }
  }
}

TEST_F(NicAllgather, OtherWays) {
  Allgather job;
  job.multicasts = false;
  job.bytes = 100;
  job.ranks = 8;
  for (const char* algorithm : {"ring", "direct", "prefix-send"}) {
    job.algorithm = algorithm;
    job.parameters = {};
    run_exactly(job);
  }
  for (const char* algorithm : {"kshift", "kprefix"}) {
    job.algorithm = algorithm;
    job.parameters = {4, 1};
    run_exactly(job);
  }
}

TEST_F(NicAllgather, BlocksOfSeveralPackets) {
  Allgather job;
  job.operations = 3;
  for (const int ranks : {2, 5, 8}) {
    job.ranks = ranks;
    for (const char* algorithm : {"concurrent-broadcast", "direct"}) {
      job.algorithm = algorithm;
      for (const std::size_t bytes : {1401, 2800, 20'003}) {
        job.bytes = bytes;
        for (const std::uint32_t depth : {1, 2, UNISONO_NIC_DEPTH_MAX / 2}) {
          job.depth = depth;
          run_exactly(job);
        }
      }
    }
  }
}

// A host without its own block forwards others without delay.
TEST_F(NicAllgather, BlocksPassARankThatIsLate) {
  Allgather job;
  job.multicasts = false;
  job.ranks = 8;
  for (const char* algorithm : {"concurrent-broadcast", "ring"}) {
    job.algorithm = algorithm;
    for (const int late : {1, 4, 7}) {
      job.late = late;
      run_exactly(job);
    }
  }
}

TEST_F(NicAllgather, SurvivesLosses) {
  Allgather job;
  for (const double loss : {0.001, 0.01, 0.1}) {
    job.loss = loss;
    std::uint64_t lost = 0;
    std::uint64_t answered = 0;
    for (const char* algorithm : {"concurrent-broadcast", "direct", "ring"}) {
      job.algorithm = algorithm;
      for (const int ranks : {2, 5, 8, 16}) {
        job.ranks = ranks;
        job.operations = static_cast<int>(harness::scaled(ranks > 8 ? 20 : 60));
        for (const std::size_t bytes : {8, 1400}) {
          job.bytes = bytes;
          const Counters counted = run(job);
          lost += counted[UNISONO_NIC_LOST];
          answered += counted[UNISONO_NIC_ANSWERED];
        }
      }
    }
    EXPECT_GT(lost, 0U) << loss;
    EXPECT_GT(answered, 0U) << loss;
  }
}

TEST_F(NicAllgather, ManyPacketsSurviveLosses) {
  Allgather job;
  job.operations = 3;
  job.bytes = 50'000;
  job.ranks = 6;
  job.depth = 8;
  job.loss = 0.1;
  for (const char* algorithm : {"concurrent-broadcast", "direct"}) {
    job.algorithm = algorithm;
    const Counters counted = run(job);
    EXPECT_GT(counted[UNISONO_NIC_LOST], 0U);
    EXPECT_GT(counted[UNISONO_NIC_ANSWERED], 0U);
  }
}

// The error names the rank, and is none of the program's.
TEST_F(NicAllgather, BlocksThatDifferAreAMismatch) {
  for (const bool by_mark : {false, true}) {
    ++communicator;
    Allgather job;
    job.ranks = 2;
    std::barrier<> together(2);
    hosts->run([&](int rank) {
      if (rank >= 2) return;
      const auto index = device_of(rank).add_group(row_of(job, rank));
      EXPECT_TRUE(index.ok());
      together.arrive_and_wait();
      const auto port =
          AllgatherPort::open(device_of(rank).row(*index), device_of(rank).memory(*index));
      EXPECT_TRUE(port.ok());
      AllgatherSegments segments(**port);
      const Bytes block(rank == 0 || by_mark ? 8 : 20);
      segments.begin(block, {}, by_mark ? static_cast<std::uint32_t>(rank) : 0);
      auto done = segments.step();
      for (; done.ok() && !*done; done = segments.step()) std::this_thread::yield();
      EXPECT_FALSE(done.ok());
      if (rank == 0 && !done.ok()) {
        EXPECT_EQ(done.error().message,
                  by_mark ? "NIC: host 1's block is of another call than that of host 0; call the "
                            "same collective on all ranks"
                          : "NIC: piece 0 of 1 of host 1's block has 24 bytes, and host 0 expects "
                            "8; call the same collective on all ranks");
      }
      together.arrive_and_wait();
      EXPECT_TRUE(device_of(rank).remove_group(*index).ok());
    });
  }
}

// An interface that is not there any more.
TEST(NicDoorbellSocket, SaysWhatFailed) {
  unisono_nic_row row = {};
  row.interface = 1U << 30;
  const auto socket = DoorbellSocket::open(row);
  ASSERT_FALSE(socket.ok());
  EXPECT_EQ(socket.error().message.find(
                "NIC port: connect the socket to another host of the group by its interface: "),
            0U)
      << socket.error().message;
}

}  // namespace
}  // namespace unisono::nic::test::allgather_hosts_test
