// SPDX-License-Identifier: BSD-3-Clause
// shrink.hpp and successor.hpp, and queries:
// Ranks of several hosts die at any moment while the others shrink their communicator, on a network
// that loses, doubles and reorders: all who come to a new communicator come to the same one, and
// its collectives are right. And queries, answered by ranks that do nothing. A seed decides it all:
// a failure prints it; `--seed N` runs that one alone, and `--seeds N` (label slow) runs many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/scale.hpp"
#include "harness/seeds.hpp"
#include "world/survivors.hpp"

namespace unisono::test::survivors_test {
namespace {

using base::Code;
using comm::Communicator;
using comm::Comparison;

const Seeds seeds = Seeds::asked(300);

// With losses, a rank that lives may be taken for lost: within so short a time it is asked but a
// few times.
enum class Network : bool { loses, keeps };

WorldOptions on_hosts(std::vector<int> hosts, std::uint64_t seed,
                      Network network = Network::keeps) {
  WorldOptions options;
  options.ranks = static_cast<int>(hosts.size());
  options.network.seed = seed;
  options.settings = {{"UNISONO_DETECT_TIMEOUT", "10ms"},
                      {"UNISONO_DETECT_TIMEOUT_HOSTS", "10ms"},
                      {"UNISONO_CHANNELS", "4"}};
  if (std::ranges::max(hosts) == 0) return options;
  options.hosts = std::move(hosts);
  options.virtual_datagrams = true;
  options.datagrams.seed = seed;
  options.datagrams.loss = network == Network::loses ? 0.1 : 0;
  options.datagrams.duplicates = 0.05;
  options.datagrams.reorder = true;
  options.datagrams.multicast = seed % 2 == 0;
  return options;
}

void expect_all_agree(Survivors& survivors, const std::vector<int>& members) {
  ASSERT_TRUE(survivors.run());
  Communicator* const group = survivors.expect_one_group();
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->members().job_ranks(), members);
  survivors.expect_sums();
}

// A living rank without a group knows the reason: some ranks are lost. Returns their number.
int expect_others_told(const Survivors& survivors) {
  int told = 0;
  for (const Survivor& each : survivors.ranks) {
    if (each.dead || each.made) continue;
    EXPECT_TRUE(each.error.has_value());
    if (!each.error) continue;
    EXPECT_EQ(each.error->code, Code::rank_lost) << each.error->message;
    ++told;
  }
  return told;
}

TEST(Shrink, NobodyDiedItIsTheSameGroup) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Survivors survivors(
        on_hosts(seed % 2 == 0 ? std::vector{0, 0, 0, 0} : std::vector{0, 1, 0, 2}, seed));
    survivors.world.at(1).failures().fail_all(Code::mismatch, "calls differ", 0);
    expect_all_agree(survivors, {0, 1, 2, 3});
  }
}

TEST(Shrink, WithoutThoseWhoDiedBefore) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Survivors one_host(on_hosts({0, 0, 0, 0}, seed));
    one_host.kill(0);
    one_host.kill(2);
    one_host.kill(3);
    expect_all_agree(one_host, {1});
    Survivors three_hosts(on_hosts({0, 1, 2, 0, 1}, seed));
    three_hosts.kill(0);
    three_hosts.kill(2);
    expect_all_agree(three_hosts, {1, 3, 4});
  }
}

// Half of the hosts go on if the one of rank 0 is among them, and only then.
TEST(Shrink, OfTwoHostsTheFirstGoesOn) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Survivors survivors(on_hosts({0, 1, 0, 1}, seed));
    for (const int left : {0, 2}) {
      for (const int right : {1, 3}) survivors.cut(left, right);
    }
    expect_all_agree(survivors, {0, 2});
    for (const int rank : {1, 3}) {
      ASSERT_TRUE(survivors.at(rank).error);
      EXPECT_EQ(survivors.at(rank).error->code, Code::rank_lost);
      EXPECT_NE(survivors.at(rank).error->message.find("half"), std::string::npos);
    }
  }
}

// Ranks 1 and 2 each report to ranks 3 and 4 that the other is lost. With five hosts, that is one
// loss too many for these two. The ranks that they know to be lost only by hearsay live, and learn
// of it; otherwise they would wait forever.
TEST(Shrink, WhoIsLostByHearsayIsTold) {
  int told = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Survivors survivors(on_hosts({0, 1, 2, 3, 4}, seed));
    survivors.cut(1, 2);
    survivors.kill(0);
    ASSERT_TRUE(survivors.run());
    survivors.expect_one_group();
    told += expect_others_told(survivors);
  }
  EXPECT_GT(told, 0);
}

// Rank 1 does not answer for a while and comes back when the others have gone on.
TEST(Shrink, WhoWasTakenForLostIsTold) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Survivors survivors(on_hosts({0, 1, 2, 0}, seed));
    survivors.at(1).dead = true;  // it does nothing, and its datagrams wait
    ASSERT_TRUE(survivors.run());
    survivors.at(1).dead = false;
    ASSERT_TRUE(survivors.run());
    ASSERT_TRUE(survivors.at(1).error);
    EXPECT_NE(survivors.at(1).error->message.find("taken for lost"), std::string::npos)
        << survivors.at(1).error->message;
    EXPECT_EQ(survivors.expect_one_group()->members().job_ranks(), (std::vector{0, 2, 3}));
  }
}

// Up to all but one die, some of them after the agreement has begun, or its messages are under way.
TEST(Shrink, DeathsAtAnyMoment) {
  const std::vector<std::vector<int>> placements = {
      {0, 0, 0, 0, 0}, {0, 1, 2, 3, 4}, {0, 1, 0, 1, 2, 2}, {0, 1, 2, 2, 1, 3}};
  int groups = 0, smaller = 0, summed = 0;
  for (std::int64_t i = 0; i < harness::scaled(seeds.count); ++i) {
    const std::uint64_t seed = seeds.first + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("repeat with: world_scenarios --gtest_filter=Shrink.DeathsAtAnyMoment --seed " +
                 std::to_string(seed));
    Survivors survivors(on_hosts(placements[seed % placements.size()], seed, Network::loses));
    const auto deaths = survivors.world.prng().below(static_cast<std::uint64_t>(survivors.size()));
    // Half of the runs have them before the group can be agreed on.
    const std::uint64_t apart = seed % 8 < 4 ? 60 : 600;
    for (std::uint64_t d = 0; d < deaths; ++d) {
      const std::uint64_t steps = survivors.world.prng().below(apart);
      for (std::uint64_t s = 0; s < steps; ++s) survivors.step();
      survivors.kill(survivors.world.random_rank());
    }
    ASSERT_TRUE(survivors.run());
    const Communicator* const group = survivors.expect_one_group();
    groups += group != nullptr ? 1 : 0;
    smaller += group != nullptr && group->size() < survivors.size() ? 1 : 0;
    summed += survivors.expect_sums() ? 1 : 0;
    for (const Survivor& each : survivors.ranks) {
      if (!each.error) continue;
      EXPECT_EQ(each.error->code, Code::rank_lost) << each.error->message;
    }
  }
  const std::int64_t count = harness::scaled(seeds.count);
  std::printf("%d groups of %lld, %d of fewer ranks, %d that computed\n", groups,
              static_cast<long long>(count), smaller, summed);
  EXPECT_GE(groups, count / 2);
  if (count < 50) return;
  // Or the deaths were not what this test means them to be.
  EXPECT_GT(smaller, count / 4);
  EXPECT_GT(summed, count / 4);
}

// One request of one rank is refused, at any step of the shrink, and at most one rank dies. No rank
// hangs. Without a death all go on, or all get an error that names the refused rank.
TEST(Shrink, MemoryRefusedAtAnyMoment) {
  const std::vector<std::vector<int>> placements = {{0, 0, 0, 0}, {0, 1, 2, 3}, {0, 1, 1, 2, 0}};
  int refused = 0;
  for (std::int64_t i = 0; i < harness::scaled(seeds.count); ++i) {
    const std::uint64_t seed = seeds.first + static_cast<std::uint64_t>(i);
    SCOPED_TRACE(
        "repeat with: world_scenarios --gtest_filter=Shrink.MemoryRefusedAtAnyMoment --seed " +
        std::to_string(seed));
    Survivors survivors(on_hosts(placements[seed % placements.size()], seed));
    base::Prng& prng = survivors.world.prng();
    const int victim = survivors.world.random_rank();
    survivors.refuse(victim, static_cast<int>(prng.below(6)));
    const bool has_death = prng.below(2) == 0;
    if (has_death) {
      const std::uint64_t steps = prng.below(600);
      for (std::uint64_t s = 0; s < steps; ++s) survivors.step();
      survivors.kill(survivors.world.random_rank());
    }
    ASSERT_TRUE(survivors.run());
    survivors.world.memory_at(victim).refuse_where({});
    refused += survivors.was_refused() ? 1 : 0;
    survivors.expect_one_group();
    survivors.expect_sums();
    if (has_death) continue;
    for (const Survivor& each : survivors.ranks) {
      ASSERT_EQ(each.error.has_value(), survivors.was_refused());
      if (!each.error) continue;
      EXPECT_EQ(each.error->code, Code::resources) << each.error->message;
      EXPECT_NE(each.error->message.find("rank " + std::to_string(victim)), std::string::npos)
          << each.error->message;
    }
  }
  EXPECT_GT(refused, 0);
}

// Some links are cut, in one direction or both, also between hosts that both live: nobody hangs,
// and there is one group.
TEST(Shrink, LinksCutAtAnyMoment) {
  int groups = 0, told = 0;
  for (std::int64_t i = 0; i < harness::scaled(seeds.count); ++i) {
    const std::uint64_t seed = seeds.first + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("repeat with: world_scenarios --gtest_filter=Shrink.LinksCutAtAnyMoment --seed " +
                 std::to_string(seed));
    Survivors survivors(on_hosts({0, 1, 2, 0, 1}, seed, Network::loses));
    const auto cuts = 1 + survivors.world.prng().below(8);
    // Half of the runs have them before the group can be agreed on.
    const std::uint64_t apart = seed % 2 == 0 ? 60 : 600;
    for (std::uint64_t c = 0; c < cuts; ++c) {
      const std::uint64_t steps = survivors.world.prng().below(apart);
      for (std::uint64_t s = 0; s < steps; ++s) survivors.step();
      const int left = survivors.world.random_rank();
      const int right = survivors.world.random_rank();
      if (survivors.world.prng().below(2) == 0) {
        survivors.cut(left, right);
      } else {
        survivors.world.datagrams()->cut_one_way(left, right);
      }
    }
    ASSERT_TRUE(survivors.run());
    if (survivors.expect_one_group() != nullptr) ++groups;
    told += expect_others_told(survivors);
  }
  // Or the cuts were not what this test means them to be.
  const std::int64_t count = harness::scaled(seeds.count);
  if (count < 50) return;
  std::printf("%d groups of %lld, %d told that they are out\n", groups,
              static_cast<long long>(count), told);
  EXPECT_GT(groups, count / 2);
  EXPECT_GT(told, count / 20);
}

// ---- query -------------------------------------------------------------------------------------

constexpr int kNone = -1;

// To the next arrival, or a moment on; then a step of any rank but `hung`.
void step_without(World& world, int hung) {
  transport::VirtualDatagramNetwork& datagrams = *world.datagrams();
  if (!datagrams.advance()) datagrams.advance_to(datagrams.now_ns() + 20'000);
  const int rank = world.random_rank();
  if (rank != hung) world.at(rank).progress();
}

// look() is called after each step.
std::optional<base::Result<bool>> ask(
    World& world, int rank, Comparison how, std::uint64_t value, int hung = kNone,
    const std::function<void()>& look = [] {}) {
  EXPECT_TRUE(world.at(rank).words().begin().ok());
  for (int steps = 0; steps < 1'000'000; ++steps) {
    auto answer = world.at(rank).words().step(how, value);
    if (!answer) return base::Result<bool>(answer.error());
    if (*answer) return base::Result<bool>(**answer);
    if (hung == kNone) {
      world.step();
    } else {
      step_without(world, hung);
    }
    watch_at(world.at(rank).members().job(),
             world.datagrams() == nullptr ? 0 : world.datagrams()->now_ns());
    look();
  }
  return std::nullopt;
}

TEST(Query, EveryComparisonOfEveryWord) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(on_hosts(seed % 2 == 0 ? std::vector{0, 0, 0} : std::vector{0, 1, 0, 1, 2}, seed));
    std::vector<std::uint64_t> words(static_cast<std::size_t>(world.ranks()));
    for (int round = 0; round < 40; ++round) {
      const auto changed = static_cast<std::size_t>(world.random_rank());
      words[changed] = world.prng().below(3);
      world.at(static_cast<int>(changed)).words().publish(words[changed]);
      const auto how = static_cast<Comparison>(world.prng().below(comm::kComparisonCount));
      const std::uint64_t value = world.prng().below(3);
      const auto answer = ask(world, world.random_rank(), how, value);
      ASSERT_TRUE(answer && answer->ok());
      EXPECT_EQ(**answer, std::ranges::all_of(words, [&](std::uint64_t word) {
        return comm::compare(word, how, value);
      }));
    }
  }
}

TEST(Query, NamesWhoIsLost) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(on_hosts({0, 1, 0, 2}, seed));
    world.datagrams()->cut(0, 1);
    const std::int64_t before = world.datagrams()->now_ns();
    const auto answer = ask(world, 0, Comparison::equal, 0);
    ASSERT_TRUE(answer && !answer->ok());
    EXPECT_EQ(answer->error().code, Code::rank_lost);
    EXPECT_NE(answer->error().message.find("rank 1 is lost (it does not answer"), std::string::npos)
        << answer->error().message;
    EXPECT_GE(world.datagrams()->now_ns() - before, 10'000'000);
    // The communicator has not failed by it, and others still answer each other.
    EXPECT_FALSE(world.at(2).failures().has_failed());
  }
}

enum class Silence : std::uint8_t { cut_off, ended, hung };

// Virtual times since rank 0 began to ask.
struct Times {
  std::int64_t silent_ns = -1;  // when the silence was longer than the limit
  std::int64_t named_ns = -1;   // when the query named the silent rank
};

// Rank 1, alone on its host, falls silent in one of these ways, and rank 0 asks.
Times name_the_silent(Silence silence, const WorldOptions& options, std::int64_t limit_ns) {
  World world(options);
  constexpr int kSilent = 1;
  if (silence == Silence::cut_off) {
    for (const int other : {0, 2, 3}) world.datagrams()->cut(other, kSilent);
  } else if (silence == Silence::ended) {
    world.datagrams()->kill(kSilent);
  }
  const std::int64_t before_ns = world.datagrams()->now_ns();
  Times times;
  const auto look = [&] {
    const bool is_silent = world.at(0).members().job().network()->silence_ns(kSilent) > limit_ns;
    if (is_silent && times.silent_ns < 0) {
      times.silent_ns = world.datagrams()->now_ns() - before_ns;
    }
  };
  const int hung = silence == Silence::cut_off ? kNone : kSilent;
  const auto answer = ask(world, 0, Comparison::equal, 0, hung, look);
  EXPECT_TRUE(answer && !answer->ok());
  if (!answer || answer->ok()) return times;
  EXPECT_EQ(answer->error().code, Code::rank_lost);
  EXPECT_NE(answer->error().message.find("rank 1 is lost (it does not answer"), std::string::npos)
      << answer->error().message;
  times.named_ns = world.datagrams()->now_ns() - before_ns;
  return times;
}

// The times of docs/howto/survive-a-lost-rank.md: UNISONO_DETECT_TIMEOUT_HOSTS, then the longest
// time between two questions, and a fifth of UNISONO_DETECT_TIMEOUT until somebody looks. The clock
// is the network's, so nothing else on the machine counts.
TEST(Query, NamesASilentRankWithinTheStatedTime) {
  struct Limits {
    std::int64_t detect_ms, hosts_ms;
  };
  const reliable::RetryDelays delays = reliable::ReliableOptions().await;
  const std::int64_t questions_ns = 2 * (delays.first_ns + delays.most_ns);
  EXPECT_LE(questions_ns, 210 * base::kMillisecond);
  std::int64_t longest_more_ns = 0;
  for (const Limits limits : {Limits{10, 10}, {10, 50}, {100, 100}, {100, 500}, {1000, 2000}}) {
    for (const Silence silence : {Silence::cut_off, Silence::ended, Silence::hung}) {
      // Virtual time goes in steps of a fixed length, so long limits take many.
      const std::uint64_t runs = limits.hosts_ms > 200 ? 1 : 4;
      for (std::uint64_t seed = 1; seed <= runs; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", limits of " +
                     std::to_string(limits.detect_ms) + " and " + std::to_string(limits.hosts_ms) +
                     " ms, silence " + std::to_string(static_cast<int>(silence)));
        WorldOptions options = on_hosts({0, 1, 0, 2}, seed);
        options.settings["UNISONO_DETECT_TIMEOUT"] = std::to_string(limits.detect_ms) + "ms";
        options.settings["UNISONO_DETECT_TIMEOUT_HOSTS"] = std::to_string(limits.hosts_ms) + "ms";
        const std::int64_t limit_ns = limits.hosts_ms * base::kMillisecond;
        const std::int64_t fifth_ns = limits.detect_ms * base::kMillisecond / 5;
        const Times times = name_the_silent(silence, options, limit_ns);
        EXPECT_GE(times.silent_ns, limit_ns);
        EXPECT_LE(times.silent_ns, limit_ns + questions_ns);
        EXPECT_LE(times.named_ns, times.silent_ns + fifth_ns);
        longest_more_ns = std::max(longest_more_ns, times.named_ns - limit_ns);
      }
    }
  }
  std::printf("at most %.2f ms more than UNISONO_DETECT_TIMEOUT_HOSTS\n",
              static_cast<double>(longest_more_ns) / 1e6);
}

}  // namespace
}  // namespace unisono::test::survivors_test
