// SPDX-License-Identifier: BSD-3-Clause
// Several ranks on each host gather blocks of many packets, while programs lose a share of received
// packets. The last rank of a host posts each packet, another one requests lost packets, and all
// find the blocks in memory.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/clock.hpp"
#include "base/prng.hpp"
#include "nic/harness/frames.hpp"
#include "nic/harness/lossy_hosts.hpp"
#include "nic/lowering/row.hpp"
#include "nic/port/allgather_segments.hpp"
#include "nic/port/host_blocks.hpp"
#include "nic/port/vector_limit.hpp"

namespace unisono::nic::test::host_blocks_test {
namespace {

constexpr std::array<int, 9> kHostOf = {0, 1, 2, 3, 0, 1, 0, 2, 0};  // by rank
constexpr int kUsed = 4;                                             // hosts
constexpr int kRanks = kHostOf.size();
constexpr std::size_t kMostPlaces = 4;
constexpr std::uint64_t kOperations = 16;

using Bytes = std::vector<std::byte>;

class NicHostBlocks : public LossyHosts {
 protected:
  static const topology::HostMap& map() {
    static const topology::HostMap made = topology::HostMap::of_labels(kHostOf);
    return made;
  }
  // From a byte to more packets than are in flight at once.
  static std::size_t bytes_of(std::uint64_t operation) { return 1 + operation * 613 % 7000; }
  static std::uint64_t packets() {
    std::uint64_t all = 0;
    for (std::uint64_t operation = 0; operation < kOperations; ++operation) {
      all += AllgatherSegments::pieces(kMostPlaces * bytes_of(operation), kPacketBytes);
    }
    return all;
  }
  static Bytes block_of(int rank, std::uint64_t operation) {
    base::Prng random(operation * 1000 + static_cast<std::uint64_t>(rank));
    Bytes block(bytes_of(operation));
    for (std::byte& byte : block) byte = static_cast<std::byte>(random.next());
    return block;
  }

  static unisono_nic_row row_of(int host, double loss, bool multicasts) {
    schedule::Shape shape;
    shape.collective = schedule::Collective::allgather;
    shape.ranks = kUsed;
    shape.count = 1;
    const auto* algorithm =
        algorithm::find(shape.collective, multicasts ? "direct" : "concurrent-broadcast");
    const auto schedule = algorithm::build(*algorithm, shape, {}, host);
    std::vector<unisono_nic_address> addresses;
    for (int each = 0; each < kUsed; ++each) addresses.push_back(host_address(each));
    GroupAddresses group;
    group.id = {4713, communicator};
    group.key = {0x1111222233334444, 0x5555666677778888};
    group.ranks = addresses;
    if (multicasts) group.multicast = group_address();
    group.depth = kPacketsMax;
    unisono_nic_row row = *make_row(*lower_allgather(*schedule), group);
    row.loss = static_cast<std::uint32_t>(loss * 4294967295.0);
    return row;
  }

  // Only the rank at place 0 asks, if packets get lost.
  static void operate(AllgatherPort& port, HostBlocks& together, int rank, bool asks) {
    const int place = map().place(rank);
    const bool is_alone = map().members(map().of(rank)).size() == 1;
    AllgatherSegments segments(port, map(), place, is_alone ? nullptr : &together);
    base::Prng random(static_cast<std::uint64_t>(rank));
    int wrong = 0;
    for (std::uint64_t operation = 0; operation < kOperations; ++operation) {
      Bytes expected;
      for (int each = 0; each < kRanks; ++each) {
        const Bytes block = block_of(each, operation);
        expected.insert(expected.end(), block.begin(), block.end());
      }
      const Bytes own = block_of(rank, operation);
      Bytes result(expected.size());
      segments.begin(own, result, 5);
      while (true) {
        const auto done = segments.step();
        ASSERT_TRUE(done.ok()) << done.error().message;
        if (*done) break;
        if (asks && place == 0 && segments.is_host_complete()) {
          const auto delay_ns = static_cast<std::int64_t>(1e6 * (0.5 + random.unit()));
          const auto asked = port.repair(base::now_ns(), delay_ns);
          ASSERT_TRUE(asked.ok()) << asked.error().message;
        }
        std::this_thread::yield();
      }
      EXPECT_EQ(segments.given(), segments.finished());
      wrong += result != expected;
    }
    EXPECT_EQ(wrong, 0) << "rank " << rank;
  }

  // The ranks of a host are threads.
  static void run_host(int host, std::uint32_t index, bool asks) {
    const auto ranks = map().members(host);
    const auto bytes = HostBlocks::memory_bytes(static_cast<int>(ranks.size()));
    const std::unique_ptr<std::byte, void (*)(void*)> memory(
        static_cast<std::byte*>(std::aligned_alloc(64, static_cast<std::size_t>(bytes))),
        std::free);
    std::fill_n(memory.get(), bytes, std::byte{0});
    std::vector<std::thread> threads;
    for (const int rank : ranks) {
      threads.emplace_back([&, rank] {
        Device& device = device_of(host);
        const auto port = AllgatherPort::open(device.row(index), device.memory(index));
        ASSERT_TRUE(port.ok()) << port.error().message;
        HostBlocks together(memory.get(), map().place(rank), static_cast<int>(ranks.size()));
        operate(**port, together, rank, asks);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  static Counters run(double loss, bool multicasts) {
    const Counters before = counts(kUsed);
    std::barrier<> together(kUsed);
    std::atomic<int> ready = 0;
    ++communicator;
    hosts->run([&](int host) {
      if (host >= kUsed) return;
      const auto index = device_of(host).add_group(row_of(host, loss, multicasts));
      if (index.ok()) ++ready;
      together.arrive_and_wait();
      if (ready == kUsed) run_host(host, *index, loss > 0);
      together.arrive_and_wait();
      if (index.ok()) {
        EXPECT_TRUE(device_of(host).remove_group(*index).ok());
      }
    });
    EXPECT_EQ(ready, kUsed);
    Counters counted = counts(kUsed);
    for (std::size_t i = 0; i < counted.size(); ++i) counted[i] -= before[i];
    EXPECT_EQ(counted[UNISONO_NIC_BLOCK_TAKEN], packets() * kUsed * (kUsed - 1))
        << "each packet once at each other host";
    EXPECT_EQ(counted[UNISONO_NIC_LOST] > 0, loss > 0);
    EXPECT_EQ(counted[UNISONO_NIC_NO_ROOM], 0U) << "a question is too short for its answer";
    return counted;
  }
};

TEST_F(NicHostBlocks, WithoutLossesThereAreNoOtherPackets) {
  const Counters counted = run(0, true);
  SCOPED_TRACE(text(counted));
  EXPECT_EQ(counted[UNISONO_NIC_BLOCK_SENT], packets() * kUsed);
  for (const auto counter : {UNISONO_NIC_STRAY_DOORBELL, UNISONO_NIC_BAD_SENDER,
                             UNISONO_NIC_NO_ROOM, UNISONO_NIC_BLOCK_PASSED}) {
    EXPECT_EQ(counted[counter], 0U) << counter_name(counter);
  }
}

TEST_F(NicHostBlocks, SurviveLosses) {
  for (const double loss : {0.05, 0.3}) {
    for (const bool multicasts : {true, false}) {
      const Counters counted = run(loss, multicasts);
      SCOPED_TRACE(text(counted));
      EXPECT_GT(counted[UNISONO_NIC_ANSWERED], 0U);
    }
  }
}

}  // namespace
}  // namespace unisono::nic::test::host_blocks_test
