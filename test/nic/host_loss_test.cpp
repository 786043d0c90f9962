// SPDX-License-Identifier: BSD-3-Clause
// Several ranks on each host, whose programs lose a share of what comes in: the host's sum is
// posted by whoever comes last, another one asks for what is lost, and all find the result in
// memory.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "engine/nic/host_reduction.hpp"
#include "nic/jobs.hpp"
#include "nic/lossy_hosts.hpp"
#include "nic/lower.hpp"

namespace unisono::nic::test {
namespace {

constexpr int kPlaces = 3;
constexpr std::uint64_t kReductions = 150;

class NicHostLoss : public LossyHosts {
 protected:
  static std::int64_t value_of(int host, int place, std::uint64_t operation) {
    return static_cast<std::int64_t>(operation) * 1000 + host * 10 + place;
  }
  static std::int64_t sum_of(std::uint64_t operation) {
    std::int64_t sum = 0;
    for (int host = 0; host < kHosts; ++host) {
      for (int place = 0; place < kPlaces; ++place) sum += value_of(host, place, operation);
    }
    return sum;
  }

  // Only the rank at place 0 asks.
  static void await(Port& port, std::uint64_t operation, int place, base::Prng& random) {
    while (!port.is_done(operation)) {
      if (place == 0) {
        const auto delay_ns = static_cast<std::int64_t>(1e6 * (0.5 + random.unit()));
        const auto asked = port.repair(base::now_ns(), delay_ns);
        ASSERT_TRUE(asked.ok()) << asked.error().message;
      }
      std::this_thread::yield();
    }
  }

  static void operate(Port& port, engine::HostReduction& reduction, int host, int place) {
    const auto kernel = arith::find_kernel(arith::Operator::sum, arith::Type::int64);
    base::Prng random(static_cast<std::uint64_t>(host * 10 + place));
    int wrong = 0;
    for (std::uint64_t operation = 0; operation < kReductions; ++operation) {
      const std::int64_t own = value_of(host, place, operation);
      if (reduction.give({UNISONO_NIC_SUM_INT64, sizeof own, &own})) {
        ASSERT_TRUE(port.post(UNISONO_NIC_SUM_INT64, reduction.combine(kernel, 1)).ok());
      } else {
        port.follow();
      }
      ASSERT_NO_FATAL_FAILURE(await(port, operation, place, random));
      wrong += static_cast<std::int64_t>(port.result(operation)[0]) != sum_of(operation);
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
    std::vector<std::thread> ranks;
    for (int place = 0; place < kPlaces; ++place) {
      ranks.emplace_back([&, place] {
        const auto port = Port::open(device_of(host), started.row);
        ASSERT_TRUE(port.ok()) << port.error().message;
        engine::HostReduction reduction(memory.get(), place, kPlaces, 7);
        operate(**port, reduction, host, place);
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }
};

TEST_F(NicHostLoss, EveryRankHasEveryResult) {
  for (const double loss : {0.0, 0.05, 0.3}) {
    Job job;
    job.loss = loss;
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
    EXPECT_EQ(counted[UNISONO_NIC_SENT_DOWN], kReductions) << "one result of each operation";
    EXPECT_EQ(counted[UNISONO_NIC_SENT_UP], kReductions * (kHosts - 1)) << "a sum of each host";
    EXPECT_EQ(counted[UNISONO_NIC_LOST] > 0, loss > 0);
  }
}

}  // namespace
}  // namespace unisono::nic::test
