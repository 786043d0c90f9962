// SPDX-License-Identifier: BSD-3-Clause
// One rank of narrow_path.py: broadcasts of one full packet, each rank the root by turns. Rank 0
// prints the time of all of them, from the first one on, in which a narrow path is found.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <unisono/unisono.hpp>

#include "options.hpp"

namespace {

constexpr std::size_t kDoubles = 165;  // fill one packet of an MTU of 1500

void broadcast(unisono::communicator& world, std::int64_t call) {
  const auto root = static_cast<int>(call % world.size());
  const auto expected = static_cast<double>(call);
  std::array<double, kDoubles> data{};
  if (world.rank() == root) data.fill(expected);
  world.broadcast(data, root);
  if (std::ranges::count(data, expected) != std::ssize(data)) {
    throw std::runtime_error(fmt::format("wrong data in broadcast {}", call));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  std::int64_t calls = 1000;
  unisono::bench::Options given("Broadcasts of one full packet.");
  given.number("--calls", calls, 1, 1'000'000'000);
  given.parse(argc, argv);
  unisono::job job;
  unisono::communicator& world = job.world();
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t call = 0; call < calls; ++call) broadcast(world, call);
  world.barrier();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (world.rank() == 0) fmt::print("{:.6f}\n", seconds.count());
} catch (const std::exception& error) {
  fmt::print(stderr, "narrow_path: {}\n", error.what());
  return 1;
}
