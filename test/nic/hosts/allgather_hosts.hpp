// SPDX-License-Identifier: BSD-3-Clause
// A fixture: allgathers end to end, on hosts in network namespaces with one rank on each. Programs
// forward blocks or join them, with and without losses. Every result is compared with the host
// engine's on the same schedule.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <functional>
#include <thread>

#include "algorithm/algorithm.hpp"
#include "base/clock.hpp"
#include "base/prng.hpp"
#include "harness/world.hpp"
#include "nic/harness/frames.hpp"
#include "nic/harness/lossy_hosts.hpp"
#include "nic/lowering/row.hpp"
#include "nic/port/allgather_port.hpp"
#include "nic/port/allgather_segments.hpp"

namespace unisono::nic::test {

using schedule::Collective;
using Bytes = std::vector<std::byte>;

inline constexpr int kMostHosts = 16;

struct Allgather {
  const char* algorithm = "concurrent-broadcast";
  std::vector<int> parameters = {};
  bool joins = false;      // blocks, in messages
  bool multicasts = true;  // if a block goes to all
  int ranks = 4;
  std::size_t bytes = 8;  // of a block
  int operations = 20;
  std::uint32_t depth = 2;
  double loss = 0;
  int late = -1;  // rank that posts when the others have all that they can have without it
};

inline std::uint64_t pieces_of(const Allgather& job, const unisono_nic_row& row) {
  const std::size_t words = UNISONO_NIC_WORDS_MAX / (job.joins ? row.largest : 1);
  return AllgatherSegments::pieces(job.bytes, (job.joins ? words - 1 : words) * 8);
}

inline Bytes block_of(const Allgather& job, int rank, int operation) {
  base::Prng random(static_cast<std::uint64_t>(operation) * 1000 +
                    static_cast<std::uint64_t>(rank));
  Bytes block(job.bytes);
  for (std::byte& byte : block) byte = static_cast<std::byte>(random.next());
  return block;
}

// Any length will do.
inline schedule::Shape shape_of(const Allgather& job) {
  schedule::Shape shape;
  shape.collective = Collective::allgather;
  shape.ranks = job.ranks;
  shape.count = 1;
  return shape;
}

inline algorithm::Parameters parameters_of(const Allgather& job) {
  const auto* row = algorithm::find(Collective::allgather, job.algorithm);
  auto parameters = algorithm::default_parameters(*row, shape_of(job));
  std::ranges::copy(job.parameters, parameters.values.begin());
  return parameters;
}

// The host engine's results, by operation; the same at all ranks.
inline std::vector<Bytes> host_results(const Allgather& job) {
  unisono::test::WorldOptions options;
  options.ranks = job.ranks;
  unisono::test::World world(options);
  world.override_with(*algorithm::find(Collective::allgather, job.algorithm), parameters_of(job));
  plan::Call call;
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
class AllgatherHosts : public LossyHostsOf<kMostHosts> {
 protected:
  using Rank = std::function<void(int rank, AllgatherPort& port, std::barrier<>& together)>;

  // All ranks run the body, each with a port of the job's group. Returns the counters.
  Counters with_ports(const Allgather& job, const Rank& body) {
    const Counters before = counts(job.ranks);
    std::barrier<> together(job.ranks);
    std::atomic<bool> failed = false;
    ++communicator;
    hosts->run([&](int rank) {
      if (rank >= job.ranks) return;
      const auto index = device_of(rank).add_group(row_of(job, rank));
      if (!index.ok()) {
        ADD_FAILURE() << index.error().message;
        failed = true;
      }
      together.arrive_and_wait();  // no rank sends to a host that does not listen yet
      if (!failed) {
        const auto port =
            AllgatherPort::open(device_of(rank).row(*index), device_of(rank).memory(*index));
        EXPECT_TRUE(port.ok());
        if (port.ok()) body(rank, **port, together);
      }
      together.arrive_and_wait();
      if (index.ok()) {
        EXPECT_TRUE(device_of(rank).remove_group(*index).ok());
      }
    });
    Counters counted = counts(job.ranks);
    for (std::size_t i = 0; i < counted.size(); ++i) counted[i] -= before[i];
    forget_late_packets(counted);
    for (const auto counter : {UNISONO_NIC_SHORT, UNISONO_NIC_NO_GROUP, UNISONO_NIC_BAD_TAG,
                               UNISONO_NIC_BAD_SENDER, UNISONO_NIC_NO_ROOM}) {
      EXPECT_EQ(counted[counter], 0U) << counter_name(counter);
    }
    return counted;
  }

  // All ranks run the job and compare their results. Returns the counters.
  Counters run(const Allgather& job) {
    SCOPED_TRACE(std::string(job.algorithm) + ", " + std::to_string(job.ranks) + " ranks, " +
                 std::to_string(job.bytes) + " bytes");
    const std::vector<Bytes> expected = host_results(job);
    std::atomic<int> waiting = 0;
    const Counters counted = with_ports(job, [&](int rank, AllgatherPort& port, std::barrier<>&) {
      operate(job, rank, port, expected, waiting);
    });
    const auto pieces = pieces_of(job, row_of(job, 0));
    const auto others = static_cast<std::uint64_t>(job.ranks - 1);
    EXPECT_EQ(counted[UNISONO_NIC_BLOCK_TAKEN],
              static_cast<std::uint64_t>(job.operations * job.ranks) * others * pieces)
        << "each block once at each rank";
    return counted;
  }

  // Without losses: the schedule's packets, and nothing else.
  void run_exactly(const Allgather& job) {
    const Counters counted = run(job);
    const auto pieces = pieces_of(job, row_of(job, 0));
    std::uint64_t own = 0;
    std::uint64_t passed = 0;
    for (int rank = 0; rank < job.ranks; ++rank) {
      const unisono_nic_row row = row_of(job, rank);
      for (int origin = 0; origin < job.ranks; ++origin) {
        (origin == rank ? own : passed) += row.route[origin].targets;
      }
      own += row.gives;
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
    std::vector<unisono_nic_address> addresses;
    for (int each = 0; each < job.ranks; ++each) addresses.push_back(host_address(each));
    GroupAddresses group;
    group.id = {4712, communicator};
    group.key = {0x1111222233334444, 0x5555666677778888};
    group.ranks = addresses;
    if (job.multicasts) group.multicast = group_address();
    group.depth = job.depth;
    unisono_nic_row row = job.joins ? row_of_all(job, rank, group, lower_doubling, check_doubling)
                                    : row_of_all(job, rank, group, lower_allgather, check_routes);
    row.loss = static_cast<std::uint32_t>(job.loss * 4294967295.0);
    return row;
  }

 private:
  // The row of the rank, if the parts of all fit one another.
  static unisono_nic_row row_of_all(const Allgather& job, int rank, const GroupAddresses& group,
                                    const auto& lower, const auto& check) {
    const auto* algorithm = algorithm::find(Collective::allgather, job.algorithm);
    std::vector<std::decay_t<decltype(*lower(std::declval<schedule::Schedule>()))>> all;
    for (int each = 0; each < job.ranks; ++each) {
      const auto schedule = algorithm::build(*algorithm, shape_of(job), parameters_of(job), each);
      EXPECT_TRUE(schedule.ok()) << schedule.error().message;
      all.push_back(*lower(*schedule));
    }
    EXPECT_TRUE(check(all).ok());
    return *make_row(all[static_cast<std::size_t>(rank)], group);
  }

  static void operate(const Allgather& job, int rank, AllgatherPort& port,
                      const std::vector<Bytes>& expected, std::atomic<int>& waiting) {
    AllgatherSegments segments(port);
    base::Prng random(static_cast<std::uint64_t>(rank) + 1);
    // Where blocks are joined, the set of blocks that can arrive depends on the late rank.
    const std::uint64_t late_bit = std::uint64_t{1} << std::max(job.late, 0);
    const std::uint64_t enough =
        job.joins ? 0 : (~std::uint64_t{0} >> (64 - job.ranks)) & ~late_bit;
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
        if (!told && job.late >= 0 && (segments.arrived() & enough) == enough) {
          told = true;
          ++waiting;
        }
        if (job.loss > 0) {
          const auto delay_ns = static_cast<std::int64_t>(patience_ns * (0.5 + random.unit()));
          const auto asked = port.repair(base::now_ns(), delay_ns);
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

}  // namespace unisono::nic::test
