// SPDX-License-Identifier: BSD-3-Clause
// The real communicators and engines over the virtual network, or shared memory, under a seeded
// scheduler: random collectives, several under way at once, ranks that run ahead, few slot indexes,
// and sequence numbers near the wrap. A failure prints its seed; `--seed N` runs that one alone,
// and
// `--seeds N` (label slow) runs many.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "harness/scale.hpp"
#include "world/random_jobs.hpp"

namespace unisono::test::world_test {
namespace {

const Seeds seeds = Seeds::asked(300);

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

// A request for memory of one rank is refused while many collectives are in progress. Each rank
// ends all of them or gets an error, and completed results are right.
void refuse_in_scenario(std::uint64_t seed, int& refused) {
  base::Prng prng(seed);
  World world(options_of(seed, prng));
  std::deque<RandomJob> jobs;
  for (int j = 0; j < 10; ++j) jobs.emplace_back(world.ranks(), prng, 4'000);
  const int victim = world.random_rank();
  const std::uint64_t number = prng.below(3);
  std::uint64_t seen = 0;
  int stepping = -1;
  bool was_met = false;
  world.memory_at(victim).refuse_where([&](const char*) {
    const bool is_this = stepping == victim && seen++ == number;
    was_met |= is_this;
    return is_this;
  });
  const auto n = static_cast<std::size_t>(world.ranks());
  std::vector<std::size_t> next(n, 0);  // by rank: the job that it starts next
  std::vector<bool> ended(n, false);
  const auto turn = [&](std::size_t r) {
    comm::Communicator& own = world.at(static_cast<int>(r));
    if (next[r] < jobs.size() && prng.below(4) == 0) {
      const base::Status status = jobs[next[r]].start(own);
      if (status) {
        ++next[r];
      } else {
        EXPECT_TRUE(was_met) << status.error().message;
        if (!own.failures().starts_no_more())
          own.failures().refuse(status.error().code, status.error().message);
        next[r] = jobs.size() + next[r] + 1;  // it starts no more
      }
    }
    own.look();
    const std::size_t started = next[r] > jobs.size() ? next[r] - jobs.size() - 1 : next[r];
    ended[r] = next[r] >= jobs.size();
    for (std::size_t j = 0; j < started && ended[r]; ++j) {
      ended[r] = jobs[j].at(static_cast<int>(r)).state != comm::Pending::State::running;
    }
  };
  for (int steps = 0; steps < 2'000'000 && std::ranges::count(ended, false) != 0; ++steps) {
    if (world.network() != nullptr) world.network()->advance();
    stepping = world.random_rank();
    turn(static_cast<std::size_t>(stepping));
  }
  ASSERT_EQ(std::ranges::count(ended, false), 0) << "no progress";
  for (RandomJob& job : jobs) {
    for (int r = 0; r < world.ranks(); ++r) {
      if (!job.is_complete_at(r)) continue;
      ASSERT_TRUE(job.is_right_at(r));
    }
  }
  refused += was_met ? 1 : 0;
}

TEST(World, MemoryRefusedAtAnyMomentEndsAllOperations) {
  int refused = 0;
  for (std::int64_t i = 0; i < harness::scaled(seeds.count); ++i) {
    const std::uint64_t seed = seeds.first + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("repeat with: world_scenarios --gtest_filter=World.MemoryRefused* --seed " +
                 std::to_string(seed));
    refuse_in_scenario(seed, refused);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(refused, 0);
}

TEST(World, RandomScenariosEndWithTheRightResults) {
  const std::int64_t count = harness::scaled(seeds.count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t seed = seeds.first + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("repeat with: world_scenarios --gtest_filter=World.Random* --seed " +
                 std::to_string(seed));
    run_scenario(seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace unisono::test::world_test
