// SPDX-License-Identifier: BSD-3-Clause
// The floor under every collective in which each rank has to run once: how long N processes take to
// get one turn each on the usable cores, handing them on with sched_yield. A barrier of N ranks
// cannot be faster than about (N - 1) / N of this on the same machine.
//
//   build/release/bench/yield_turn 8 32
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "micro/own_cores.hpp"

namespace {

constexpr int kRounds = 7;
constexpr std::int64_t kRoundNs = 100'000'000;

struct Shared {
  std::atomic<int> ready;
  std::atomic<bool> stop;
  std::atomic<std::int64_t> turns;
};

[[noreturn]] void take_turns(Shared& shared, int core) {
  unisono::bench::pin_to(core);
  std::int64_t turns = 0;
  shared.ready.fetch_add(1);
  while (!shared.stop.load(std::memory_order_relaxed)) {
    sched_yield();
    ++turns;
  }
  shared.turns.fetch_add(turns);
  _exit(0);
}

// Median time in which each of the processes had one turn.
double turn_us(int processes, const std::vector<int>& cores) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return -1;
    auto& shared = *new (memory) Shared{};
    for (int p = 0; p < processes; ++p) {
      const pid_t child = fork();
      if (child == 0) take_turns(shared, cores[static_cast<std::size_t>(p) % cores.size()]);
    }
    while (shared.ready.load() < processes) usleep(1000);
    const std::int64_t start = unisono::base::now_ns();
    usleep(kRoundNs / 1000);
    shared.stop.store(true);
    const std::int64_t end = unisono::base::now_ns();
    while (wait(nullptr) > 0) {
    }
    rounds.push_back(static_cast<double>(end - start) * 1e-3 * processes /
                     static_cast<double>(shared.turns.load()));
    munmap(memory, sizeof(Shared));
  }
  std::ranges::nth_element(rounds, rounds.begin() + kRounds / 2);
  return rounds[kRounds / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<int> cores = unisono::bench::own_cores();
  std::printf("# %zu usable cores; median of %d rounds\n# processes   us for a turn of each\n",
              cores.size(), kRounds);
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    int processes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), processes);
    if (error != std::errc() || end != text.data() + text.size() || processes < 1) {
      std::fprintf(stderr, "yield_turn: %s is no number of processes\n", argv[i]);
      return 2;
    }
    std::printf("%11d   %.2f\n", processes, turn_us(processes, cores));
  }
  return 0;
}
