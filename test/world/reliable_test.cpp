// SPDX-License-Identifier: BSD-3-Clause
// The real communicators and engines over the reliable transport on a bad network: random
// collectives, several under way at once, loss, duplicates and reordering from a seed, paths that
// carry less than full datagrams, few packets in the pool; between single ranks, and between hosts
// that have several. At a random moment the network may cease to carry multicast between all of
// them or some. Every result is compared. A failure prints its seed; `--seed N` runs that one
// alone, and `--seeds N` (label slow) runs many.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/scale.hpp"
#include "world/random_jobs.hpp"

namespace unisono::test::reliable_test {
namespace {

constexpr std::int64_t kAllWorlds = 300;  // without a sanitizer
const Seeds seeds = Seeds::asked(kAllWorlds);

WorldOptions options_of(std::uint64_t seed, bool has_hosts, base::Prng& prng) {
  WorldOptions options;
  options.ranks = 2 + static_cast<int>(prng.below(7));
  options.network.seed = seed;  // of the scheduler
  options.virtual_datagrams = true;
  const double losses[] = {0, 0.001, 0.01, 0.1};
  options.datagrams.seed = seed;
  options.datagrams.loss = losses[seed % 4];
  options.datagrams.duplicates = prng.below(2) == 0 ? 0.05 : 0;
  options.datagrams.reorder = prng.below(4) != 0;
  options.datagrams.max_payload = prng.below(4) == 0 ? 272 : 1472;
  options.datagrams.room = prng.below(4) == 0 ? 5 : 0;
  options.pool_packets = prng.below(4) == 0 ? 8 : 512;
  options.settings = {
      {"UNISONO_BUFFERS", prng.below(8) == 0 ? "8M" : "512K"},
      {"UNISONO_CHANNELS", std::to_string(2 + prng.below(4))},
      {"UNISONO_FIRST_SEQUENCE", sequence_before_the_wrap(prng.below(20))},
  };
  if (has_hosts) {
    options.hosts = place_on_hosts(options.ranks, prng);
    options.datagrams.multicast = prng.below(2) == 0;
    if (options.datagrams.multicast && prng.below(2) == 0) {
      options.settings["UNISONO_ALGORITHM"] = kMulticasting;
    }
  }
  return options;
}

// The faults of the network, and the repairs.
struct Traffic {
  std::uint64_t multicasts = 0, passed_on = 0;
  int multicast_ends = 0;
  std::int64_t lost = 0;
  std::uint64_t repeated = 0;
  int narrow = 0;  // worlds with narrow paths
  std::uint64_t pieces = 0;
};

void run_scenario(std::uint64_t seed, bool has_hosts, Traffic& traffic) {
  base::Prng prng(seed);
  const WorldOptions options = options_of(seed, has_hosts, prng);
  World world(options);
  // Long enough to find out that multicast is not carried any more.
  const bool is_long = options.datagrams.multicast && prng.below(4) == 0;
  RandomJobs jobs(world, prng, 8 + prng.below(is_long ? 80 : 12), is_long ? 1'000 : 6'000);
  jobs.run();
  traffic.multicast_ends += options.datagrams.multicast && jobs.has_multicast_ended() ? 1 : 0;
  traffic.narrow += jobs.have_paths_narrowed() ? 1 : 0;
  traffic.lost += world.datagrams()->lost();
  for (int rank = 0; rank < world.ranks(); ++rank) {
    const auto& counts = world.reliable_at(rank).counts();
    traffic.repeated += counts.repeated;
    traffic.pieces += counts.pieces;
    traffic.multicasts += world.reliable_at(rank).group().counts().packets;
    traffic.passed_on += world.reliable_at(rank).group().counts().passed_on;
    if (options.datagrams.loss == 0) {
      EXPECT_EQ(counts.beyond, 0U);
    }
  }
}

void run_scenarios(bool has_hosts) {
  Traffic traffic;
  const std::int64_t count = harness::scaled(seeds.count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t seed = seeds.first + static_cast<std::uint64_t>(i);
    SCOPED_TRACE(
        std::string("repeat with: world_scenarios --gtest_filter=ReliableWorld.") +
        (has_hosts ? "EveryResultIsRightBetweenHosts" : "EveryResultIsRightOnABadNetwork") +
        " --seed " + std::to_string(seed));
    run_scenario(seed, has_hosts, traffic);
    if (testing::Test::HasFatalFailure()) return;
  }
  std::printf("%llu multicasts, which ended %d times; %llu passed on by unicast\n",
              static_cast<unsigned long long>(traffic.multicasts), traffic.multicast_ends,
              static_cast<unsigned long long>(traffic.passed_on));
  // Or the network was not as bad as this test means it to be.
  if (count > 10) {
    EXPECT_GT(traffic.lost, 0);
    EXPECT_GT(traffic.repeated, 0U);
    EXPECT_GT(traffic.narrow, 0);
    EXPECT_GT(traffic.pieces, 0U);
    EXPECT_EQ(traffic.multicasts > 0, has_hosts);
    EXPECT_EQ(traffic.multicast_ends > count / 20, has_hosts);
  }
  // In a part of the worlds, none may last long enough after its multicast has ended.
  if (count >= kAllWorlds) {
    EXPECT_EQ(traffic.passed_on > 0, has_hosts);
  }
}

TEST(ReliableWorld, EveryResultIsRightOnABadNetwork) { run_scenarios(false); }

TEST(ReliableWorld, EveryResultIsRightBetweenHosts) { run_scenarios(true); }

}  // namespace
}  // namespace unisono::test::reliable_test
