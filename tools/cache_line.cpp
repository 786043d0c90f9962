// SPDX-License-Identifier: BSD-3-Clause
#include "cache_line.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/clock.hpp"

namespace unisono::tools {
namespace {

// The least of many short batches: in the others a thread may have lost its core.
constexpr int kBatches = 100;
constexpr std::uint32_t kRoundTrips = 200;

struct alignas(128) Line {
  std::atomic<std::uint32_t> turn = 0;
};

// Waits for the other thread's turn; it may have lost its core.
void wait_for(const Line& line, std::uint32_t turn) {
  constexpr int kLooksBeforeYield = 10'000;
  for (int looks = 1; line.turn.load(std::memory_order_acquire) != turn; ++looks) {
    if (looks % kLooksBeforeYield == 0) std::this_thread::yield();
  }
}

void pin_to(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  // Without the core the figure is one of other cores, which is still a figure.
  (void)pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

std::vector<int> own_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

}  // namespace

std::optional<CacheLine> measure_cache_line() {
  const std::vector<int> cores = own_cores();
  if (cores.size() < 2) return std::nullopt;
  Line line;
  // The first batch moves the line and wakes the cores.
  constexpr std::uint32_t kAll = (kBatches + 1) * kRoundTrips;
  std::array<std::int64_t, kBatches + 1> batch_ns{};
  std::thread second([&] {
    pin_to(cores[1]);
    for (std::uint32_t trip = 0; trip < kAll; ++trip) {
      wait_for(line, 2 * trip + 1);
      line.turn.store(2 * trip + 2, std::memory_order_release);
    }
  });
  std::thread first([&] {
    pin_to(cores[0]);
    for (std::uint32_t trip = 0; trip < kAll;) {
      const std::int64_t start = base::now_ns();
      for (std::uint32_t i = 0; i < kRoundTrips; ++i, ++trip) {
        line.turn.store(2 * trip + 1, std::memory_order_release);
        wait_for(line, 2 * trip + 2);
      }
      batch_ns[trip / kRoundTrips - 1] = base::now_ns() - start;
    }
  });
  first.join();
  second.join();
  const std::int64_t least = *std::min_element(batch_ns.begin() + 1, batch_ns.end());
  return CacheLine{static_cast<double>(least) / kRoundTrips, cores[0], cores[1]};
}

}  // namespace unisono::tools
