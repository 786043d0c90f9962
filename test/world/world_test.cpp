// SPDX-License-Identifier: BSD-3-Clause
// The real communicators and engines over the virtual network, or shared memory, under a seeded
// scheduler: random collectives, several under way at once, ranks that run ahead, few channels, and
// sequence numbers near the wrap. A failure prints its seed; `--seed N` runs that one alone, and
// `--seeds N` (label slow) runs many.
#include <gtest/gtest.h>

#include <string>

#include "harness/scale.hpp"
#include "world/random_jobs.hpp"

namespace unisono::test {
namespace {

Seeds seeds{.count = 300};

WorldOptions options_of(std::uint64_t seed, base::Prng& prng) {
  WorldOptions options;
  options.ranks = 1 + static_cast<int>(prng.below(9));
  options.virtual_network = prng.below(4) != 0;
  options.network.seed = seed;
  options.network.reorder = prng.below(2) == 0;
  options.network.multicast = prng.below(2) == 0;
  options.network.pull = prng.below(2) == 0;
  options.settings = {
      {"UNISONO_ENGINE", prng.below(2) == 0 ? "inline" : "helping"},
      {"UNISONO_BUFFERS", prng.below(8) == 0 ? "64M" : "1M"},
      {"UNISONO_CHANNELS", std::to_string(2 + prng.below(4))},
      {"UNISONO_SINGLE_COPY_FROM", prng.below(2) == 0 ? "64" : "auto"},
      {"UNISONO_FIRST_SEQUENCE", sequence_before_the_wrap(prng.below(40))},
  };
  return options;
}

void run_scenario(std::uint64_t seed) {
  base::Prng prng(seed);
  World world(options_of(seed, prng));
  // Long vectors take most of the time, and need not be in every scenario.
  const bool is_long = prng.below(8) == 0;
  RandomJobs(world, prng, 15 + prng.below(30), is_long ? 40'000 : 4'000).run();
}

TEST(World, RandomScenariosEndWithTheRightResults) {
  const std::int64_t count = harness::scaled(seeds.count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t seed = seeds.first + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("repeat with: world_scenarios --seed " + std::to_string(seed));
    run_scenario(seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace unisono::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  unisono::test::seeds.read(argc, argv);
  return RUN_ALL_TESTS();
}
