// SPDX-License-Identifier: BSD-3-Clause
// Allgathers end to end: hosts in network namespaces, one rank on each, whose programs send blocks
// on, with and without losses. Every result has the bits of the host engine's on the same schedule,
// and without losses exactly the schedule's packets are sent.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <bit>
#include <cstring>
#include <thread>

#include "algorithm/algorithm.hpp"
#include "base/clock.hpp"
#include "base/prng.hpp"
#include "harness/scale.hpp"
#include "harness/world.hpp"
#include "nic/allgather_port.hpp"
#include "nic/allgather_segments.hpp"
#include "nic/device.hpp"
#include "nic/frames.hpp"
#include "nic/hosts.hpp"
#include "nic/kicker.hpp"
#include "nic/row.hpp"

namespace unisono::nic::test {
namespace {

using schedule::Collective;
using Bytes = std::vector<std::byte>;

constexpr int kMostHosts = 16;

struct Allgather {
  const char* algorithm = "concurrent-broadcast";
  std::vector<int> parameters = {};
  bool multicasts = true;  // if a block goes to all
  int ranks = 4;
  std::size_t bytes = 8;  // of a block
  int operations = 20;
  std::uint32_t depth = 2;
  double loss = 0;
  int late = -1;  // rank that posts when the others have all blocks but its own
};

Bytes block_of(const Allgather& job, int rank, int operation) {
  base::Prng random(static_cast<std::uint64_t>(operation) * 1000 +
                    static_cast<std::uint64_t>(rank));
  Bytes block(job.bytes);
  for (std::byte& byte : block) byte = static_cast<std::byte>(random.next());
  return block;
}

// Any length will do.
schedule::Shape shape_of(const Allgather& job) {
  schedule::Shape shape;
  shape.collective = Collective::allgather;
  shape.ranks = job.ranks;
  shape.count = 1;
  return shape;
}

algorithm::Parameters parameters_of(const Allgather& job) {
  const auto* row = algorithm::find(Collective::allgather, job.algorithm);
  auto parameters = algorithm::default_parameters(*row, shape_of(job));
  std::ranges::copy(job.parameters, parameters.values.begin());
  return parameters;
}

// What the host engine gathers, by operation; the same at all ranks.
std::vector<Bytes> host_results(const Allgather& job) {
  unisono::test::WorldOptions options;
  options.ranks = job.ranks;
  unisono::test::World world(options);
  world.override_with(*algorithm::find(Collective::allgather, job.algorithm), parameters_of(job));
  group::Call call;
  call.collective = Collective::allgather;
  call.count = static_cast<std::int64_t>(job.bytes);
  call.type = static_cast<std::int32_t>(arith::Type::uint8);
  call.element_bytes = 1;
  std::vector<Bytes> results;
  for (int operation = 0; operation < job.operations; ++operation) {
    std::vector<Bytes> inputs;
    std::vector<Bytes> outputs;
    std::vector<const void*> from;
    std::vector<void*> to;
    for (int rank = 0; rank < job.ranks; ++rank) {
      inputs.push_back(block_of(job, rank, operation));
      outputs.emplace_back(job.bytes * static_cast<std::size_t>(job.ranks));
    }
    for (auto& input : inputs) from.push_back(input.data());
    for (auto& output : outputs) to.push_back(output.data());
    EXPECT_TRUE(world.run(call, from, to));
    for (const Bytes& output : outputs) EXPECT_EQ(output, outputs[0]);
    results.push_back(outputs[0]);
  }
  return results;
}

// Sixteen hosts whose programs may lose packets; jobs take the first of them.
class NicAllgather : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto trial = load_device({});
    auto made = trial.ok() ? Hosts::make(kMostHosts) : trial.error();
    if (!made.ok()) {
      problem = made.error();
      return;
    }
    hosts = *std::move(made);
    hosts->run([](int host) {
      DeviceOptions options;
      options.interface = "u0";
      options.loses_packets = true;
      auto loaded = load_device(options);
      if (loaded.ok())
        devices[static_cast<std::size_t>(host)] = *std::move(loaded);
      else
        ADD_FAILURE() << loaded.error().message;
    });
  }
  static void TearDownTestSuite() {
    for (auto& device : devices) device.reset();
    hosts.reset();
  }
  void SetUp() override {
    if (hosts == nullptr && problem.code == base::Code::unsupported)
      GTEST_SKIP() << problem.message;
    ASSERT_NE(hosts, nullptr) << problem.message;
    for (const auto& device : devices) ASSERT_NE(device, nullptr);
  }

  static Device& device_of(int rank) { return *devices[static_cast<std::size_t>(rank)]; }

  // All ranks run the job and compare what they get. Returns what was counted.
  Counters run(const Allgather& job) {
    SCOPED_TRACE(std::string(job.algorithm) + ", " + std::to_string(job.ranks) + " ranks, " +
                 std::to_string(job.bytes) + " bytes");
    const std::vector<Bytes> expected = host_results(job);
    const Counters before = counts(job.ranks);
    std::barrier<> together(job.ranks);
    std::atomic<bool> failed = false;
    std::atomic<int> waiting = 0;
    ++communicator;
    hosts->run([&](int rank) {
      if (rank >= job.ranks) return;
      const auto index = device_of(rank).add_group(row_of(job, rank));
      if (!index.ok()) {
        ADD_FAILURE() << index.error().message;
        failed = true;
      }
      together.arrive_and_wait();  // nobody sends to a host that does not listen yet
      if (!failed) operate(job, rank, *index, expected, waiting);
      together.arrive_and_wait();
      if (index.ok()) {
        EXPECT_TRUE(device_of(rank).remove_group(*index).ok());
      }
    });
    Counters counted = counts(job.ranks);
    for (std::size_t i = 0; i < counted.size(); ++i) counted[i] -= before[i];
    for (const auto counter : {UNISONO_NIC_SHORT, UNISONO_NIC_NO_GROUP, UNISONO_NIC_BAD_TAG,
                               UNISONO_NIC_BAD_SENDER, UNISONO_NIC_NO_ROOM}) {
      EXPECT_EQ(counted[counter], 0U) << counter_name(counter);
    }
    const auto pieces = AllgatherSegments::pieces(job.bytes);
    const auto others = static_cast<std::uint64_t>(job.ranks - 1);
    EXPECT_EQ(counted[UNISONO_NIC_BLOCK_TAKEN],
              static_cast<std::uint64_t>(job.operations * job.ranks) * others * pieces)
        << "each block once at each rank";
    return counted;
  }

  // Without losses: the schedule's packets, and nothing else.
  void run_exactly(const Allgather& job) {
    const Counters counted = run(job);
    const auto pieces = AllgatherSegments::pieces(job.bytes);
    std::uint64_t own = 0;
    std::uint64_t passed = 0;
    for (int rank = 0; rank < job.ranks; ++rank) {
      const unisono_nic_row row = row_of(job, rank);
      for (int origin = 0; origin < job.ranks; ++origin) {
        (origin == rank ? own : passed) += row.route[origin].hops;
      }
    }
    const std::uint64_t times = static_cast<std::uint64_t>(job.operations) * pieces;
    EXPECT_EQ(counted[UNISONO_NIC_BLOCK_SENT], own * times);
    EXPECT_EQ(counted[UNISONO_NIC_BLOCK_PASSED], passed * times);
    for (int i = UNISONO_NIC_SHORT; i < UNISONO_NIC_COUNTERS; ++i) {
      if (i >= UNISONO_NIC_BLOCK_SENT && i <= UNISONO_NIC_BLOCK_PASSED) continue;
      EXPECT_EQ(counted[static_cast<std::size_t>(i)], 0U)
          << job.algorithm << ", " << job.ranks
          << " ranks: " << counter_name(static_cast<unisono_nic_counter>(i));
    }
  }

  static unisono_nic_row row_of(const Allgather& job, int rank) {
    const auto* algorithm = algorithm::find(Collective::allgather, job.algorithm);
    std::vector<Routes> all;
    for (int each = 0; each < job.ranks; ++each) {
      const auto schedule = algorithm::build(*algorithm, shape_of(job), parameters_of(job), each);
      EXPECT_TRUE(schedule.ok()) << schedule.error().message;
      all.push_back(*lower_allgather(*schedule));
    }
    EXPECT_TRUE(check_routes(all).ok());
    std::vector<unisono_nic_address> addresses;
    for (int each = 0; each < job.ranks; ++each) addresses.push_back(host_address(each));
    GroupAddresses group;
    group.id = {4712, communicator};
    group.key = {0x1111222233334444, 0x5555666677778888};
    group.ranks = addresses;
    if (job.multicasts) group.multicast = group_address();
    group.depth = job.depth;
    unisono_nic_row row = *make_row(all[static_cast<std::size_t>(rank)], group);
    row.loss = static_cast<std::uint32_t>(job.loss * 4294967295.0);
    return row;
  }

  static Counters counts(int ranks) {
    Counters sums = {};
    for (int rank = 0; rank < ranks; ++rank) {
      const Counters one = *device_of(rank).counters();
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += one[i];
    }
    return sums;
  }

  static inline std::unique_ptr<Hosts> hosts;
  static inline std::array<std::unique_ptr<Device>, kMostHosts> devices;
  static inline base::Error problem;
  static inline std::uint32_t communicator = 0;  // the last one used

 private:
  static void operate(const Allgather& job, int rank, std::uint32_t index,
                      const std::vector<Bytes>& expected, std::atomic<int>& waiting) {
    const auto port = AllgatherPort::open(device_of(rank), index);
    ASSERT_TRUE(port.ok()) << port.error().message;
    AllgatherSegments segments(**port);
    base::Prng random(static_cast<std::uint64_t>(rank) + 1);
    const std::uint64_t all_others =
        (~std::uint64_t{0} >> (64 - job.ranks)) & ~(std::uint64_t{1} << std::max(job.late, 0));
    int wrong = 0;
    for (int operation = 0; operation < job.operations; ++operation) {
      const Bytes block = block_of(job, rank, operation);
      Bytes result(block.size() * static_cast<std::size_t>(job.ranks));
      segments.begin(block, result);
      if (rank == job.late) {
        while (waiting.load() < (operation + 1) * (job.ranks - 1)) std::this_thread::yield();
      }
      bool told = false;
      for (double patience_ns = base::kMillisecond;;) {
        const auto done = segments.step();
        ASSERT_TRUE(done.ok()) << done.error().message;
        if (*done) break;
        if (!told && job.late >= 0 && segments.arrived() == all_others) {
          told = true;
          ++waiting;
        }
        if (job.loss > 0) {
          const auto delay_ns = static_cast<std::int64_t>(patience_ns * (0.5 + random.unit()));
          const auto asked = (*port)->repair(base::now_ns(), delay_ns);
          ASSERT_TRUE(asked.ok()) << asked.error().message;
          if (*asked > 0) patience_ns = std::min(patience_ns * 2, 8.0 * base::kMillisecond);
        }
        std::this_thread::yield();
      }
      wrong += result != expected[static_cast<std::size_t>(operation)];
    }
    EXPECT_EQ(wrong, 0) << "rank " << rank;
  }
};

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

// What it does not have itself does not hold up what passes.
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
  for (const double loss : {0.01, 0.1}) {
    job.loss = loss;
    std::uint64_t answered = 0;
    for (const char* algorithm : {"concurrent-broadcast", "direct", "ring"}) {
      job.algorithm = algorithm;
      for (const int ranks : {2, 5, 8, 16}) {
        job.ranks = ranks;
        job.operations = static_cast<int>(harness::scaled(ranks > 8 ? 20 : 60));
        for (const std::size_t bytes : {8, 1400}) {
          job.bytes = bytes;
          answered += run(job)[UNISONO_NIC_ANSWERED];
        }
      }
    }
    EXPECT_GT(answered, 0U);
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
      const auto port = AllgatherPort::open(device_of(rank), *index);
      EXPECT_TRUE(port.ok());
      AllgatherSegments segments(**port);
      const Bytes block(rank == 0 || by_mark ? 8 : 20);
      segments.begin(block, {}, by_mark ? static_cast<std::uint32_t>(rank) : 0);
      auto done = segments.step();
      for (; done.ok() && !*done; done = segments.step()) std::this_thread::yield();
      EXPECT_FALSE(done.ok());
      if (rank == 0 && !done.ok()) {
        EXPECT_EQ(done.error().message,
                  by_mark ? "NIC: rank 1's block is of another call than that of rank 0; call the "
                            "same collective on all ranks"
                          : "NIC: piece 0 of 1 of rank 1's block has 24 bytes, and that of rank 0 "
                            "8; call the same collective on all ranks");
      }
      together.arrive_and_wait();
      EXPECT_TRUE(device_of(rank).remove_group(*index).ok());
    });
  }
}

// An interface that is not there any more.
TEST(NicKicker, SaysWhatFailed) {
  unisono_nic_row row = {};
  row.interface = 1U << 30;
  const auto kicker = Kicker::open(row);
  ASSERT_FALSE(kicker.ok());
  EXPECT_EQ(kicker.error().message.find("NIC port: prepare the socket for multicast: "), 0U)
      << kicker.error().message;
}

}  // namespace
}  // namespace unisono::nic::test
