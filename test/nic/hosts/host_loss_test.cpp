// SPDX-License-Identifier: BSD-3-Clause
// Several ranks on each host, whose programs lose a share of received packets. The host's sum, of
// one packet or several, is posted by the last rank, another one requests lost packets, and all
// find the result in memory.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "engine/nic/host_reduction.hpp"
#include "nic/harness/jobs.hpp"
#include "nic/harness/lossy_hosts.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/port/segments.hpp"
#include "nic/port/tree_vector.hpp"

namespace unisono::nic::test::host_loss_test {
namespace {

constexpr int kPlaces = 3;
constexpr std::uint64_t kReductions = 150;

class NicHostLoss : public LossyHosts {
 protected:
  using Vector = std::vector<std::int64_t>;

  // From one word to the longest vector.
  static std::size_t count_of(std::uint64_t operation) { return 1 + operation * 37 % kWordsMax; }
  static std::uint64_t packets() {
    std::uint64_t all = 0;
    for (std::uint64_t operation = 0; operation < kReductions; ++operation) {
      all += Segments::pieces(count_of(operation), UNISONO_NIC_WORDS_MAX);
    }
    return all;
  }
  static Vector vector_of(int host, int place, std::uint64_t operation) {
    Vector values(count_of(operation));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<std::int64_t>(operation * 1000 + i * i) + host * 10 + place;
    }
    return values;
  }
  static Vector sum_of(std::uint64_t operation) {
    Vector sum(count_of(operation));
    for (int host = 0; host < kHosts; ++host) {
      for (int place = 0; place < kPlaces; ++place) {
        const Vector given = vector_of(host, place, operation);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += given[i];
      }
    }
    return sum;
  }

  // As a rank of the host joins it by its daemon.
  static base::Status join(TreePorts& trees, Device& device, std::uint32_t row) {
    auto member = std::make_unique<Membership>();
    member->row = device.row(row);
    UNISONO_TRY(member->mapping.open(member->row, device.maps(row)));
    return trees.add({}, std::move(member), std::nullopt);
  }

  // Only the rank at place 0 asks.
  static void await(TreePorts& trees, const TreeVector& vector, int place, base::Prng& random) {
    while (!vector.is_done()) {
      if (place == 0) {
        const auto delay_ns = static_cast<std::int64_t>(1e6 * (0.5 + random.unit()));
        const auto asked = trees.repair(trees.ends(), base::now_ns(), delay_ns);
        ASSERT_TRUE(asked.ok()) << asked.error().message;
      }
      std::this_thread::yield();
    }
  }

  // `posted`, of the host's ranks, and the copy of the sum are for the thread sanitizer. The kernel
  // puts the result together. So the sanitizer cannot see that it orders the next contribution
  // after the combination.
  static void operate(TreePorts& trees, engine::HostReduction& reduction, int host, int place,
                      std::atomic<std::uint64_t>& posted) {
    const auto kernel = arith::find_kernel(arith::Operator::sum, arith::Type::int64);
    TreeVector vector(trees);
    base::Prng random(static_cast<std::uint64_t>(host * 10 + place));
    int wrong = 0;
    for (std::uint64_t operation = 0; operation < kReductions; ++operation) {
      const Vector own = vector_of(host, place, operation);
      const std::size_t bytes = own.size() * sizeof own[0];
      const auto cut = TreeCut::whole(bytes);
      if (reduction.give({UNISONO_NIC_SUM_INT64, bytes, {own.data(), 0, bytes}})) {
        const auto combined = reduction.combine(kernel, static_cast<std::int64_t>(own.size()));
        const std::vector<std::uint64_t> sum(combined.begin(), combined.end());
        posted.store(operation + 1, std::memory_order_release);
        ASSERT_TRUE(vector.post(UNISONO_NIC_SUM_INT64, cut, {sum.data(), 0, bytes}).ok());
      } else {
        vector.follow(cut);
      }
      ASSERT_NO_FATAL_FAILURE(await(trees, vector, place, random));
      Vector result(own.size());
      ASSERT_TRUE(vector.take(result.data()));
      ASSERT_EQ(posted.load(std::memory_order_acquire), operation + 1);
      wrong += result != sum_of(operation);
    }
    EXPECT_EQ(wrong, 0) << "host " << host << " place " << place;
  }

  // The ranks of a host are threads.
  static void run_host(const Rank& started, int host) {
    const auto bytes = engine::HostReduction::memory_bytes(kPlaces);
    const std::unique_ptr<std::byte, void (*)(void*)> memory(
        static_cast<std::byte*>(std::aligned_alloc(64, static_cast<std::size_t>(bytes))),
        std::free);
    std::fill_n(memory.get(), bytes, std::byte{0});
    std::atomic<std::uint64_t> posted = 0;
    std::vector<std::thread> ranks;
    for (int place = 0; place < kPlaces; ++place) {
      ranks.emplace_back([&, place] {
        TreePorts trees;
        const base::Status joined = join(trees, device_of(host), started.row);
        ASSERT_TRUE(joined.ok()) << joined.error().message;
        engine::HostReduction reduction(memory.get(), place, kPlaces, 7);
        operate(trees, reduction, host, place, posted);
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }
};

TEST_F(NicHostLoss, EveryRankHasEveryResult) {
  for (const double loss : {0.0, 0.05, 0.3}) {
    Job job;
    job.loss = loss;
    job.depth = kPacketsMax;
    const Counters before = counts();
    std::barrier<> together(kHosts);
    std::atomic<int> ready = 0;
    hosts->run([&](int host) {
      Device& device = device_of(host);
      const auto started = start_rank(device, job, host, kHosts, 77);
      if (started.ok()) ++ready;
      together.arrive_and_wait();
      if (ready == kHosts) run_host(*started, host);
      together.arrive_and_wait();
      if (started.ok()) {
        EXPECT_TRUE(device.remove_group(started->row).ok());
      }
    });
    EXPECT_EQ(ready, kHosts);
    Counters counted = counts();
    for (std::size_t i = 0; i < counted.size(); ++i) counted[i] -= before[i];
    SCOPED_TRACE(text(counted));
    EXPECT_EQ(counted[UNISONO_NIC_SENT_DOWN], packets()) << "one result of each packet";
    EXPECT_EQ(counted[UNISONO_NIC_SENT_UP], packets() * (kHosts - 1)) << "a sum of each host";
    EXPECT_EQ(counted[UNISONO_NIC_LOST] > 0, loss > 0);
  }
}

}  // namespace
}  // namespace unisono::nic::test::host_loss_test
