// SPDX-License-Identifier: BSD-3-Clause
// failure_updates.hpp and update_tree.hpp:
// News of a failure and of a loss reach all ranks of a large job with a number of packets in
// proportion to the ranks, whoever has them first and however many do; and also where hosts have
// died of which nobody has heard. Hosts of a rank each, in one thread, in virtual time; `--hosts N`
// (label slow: 1024) takes more of them, `--seeds N` more deaths.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "harness/seeds.hpp"
#include "harness/world.hpp"
#include "job/loss/update_tree.hpp"
#include "world/survivors.hpp"

namespace unisono::test::updates_test {
namespace {

using base::Code;
using job::RankState;

Seeds seeds{.count = 10};
int hosts_of_many = 128;  // `--hosts`

// A tree has an edge for each rank but one. Each edge carries, both ways, a report and a put that
// announces it. It also carries a question and its answer if nothing else acknowledges them.
constexpr std::int64_t kPacketsOfARank = 8;

WorldOptions many_hosts(int hosts, std::uint64_t seed) {
  WorldOptions options;
  options.ranks = hosts;
  for (int r = 0; r < hosts; ++r) options.hosts.push_back(r);
  options.network.seed = seed;
  options.virtual_datagrams = true;
  options.datagrams.seed = seed;
  options.datagrams.delay_max_ns = 20'000;
  options.pool_packets = 128;
  options.settings = {{"UNISONO_CHANNELS", "2"}, {"UNISONO_BUFFERS", "64K"}};
  return options;
}

class Updates {
 public:
  explicit Updates(const WorldOptions& options) : world(options), is_dead_(options.hosts.size()) {}
  ~Updates() { world.part(); }

  void kill(int rank) {
    is_dead_[static_cast<std::size_t>(rank)] = true;
    world.datagrams()->kill(rank);
  }
  bool is_dead(int rank) const { return is_dead_[static_cast<std::size_t>(rank)]; }

  // Until all who live know; gives the packets that this took. `turn`: what each does.
  template <class Turn, class Knows>
  std::int64_t spread(const Turn& turn, const Knows& knows) {
    const std::int64_t before = world.datagrams()->sent();
    constexpr int kMostRounds = 4'000;
    constexpr std::int64_t kRoundNs = 50'000;
    std::vector<bool> known(is_dead_.size());
    std::size_t missing = is_dead_.size();
    for (int round = 0; round < kMostRounds && missing != 0; ++round) {
      world.datagrams()->advance_to(world.datagrams()->now_ns() + kRoundNs);
      missing = 0;
      for (int r = 0; r < world.ranks(); ++r) {
        const auto at = static_cast<std::size_t>(r);
        if (is_dead(r)) continue;
        turn(r);
        if (is_dead(r)) continue;
        if (!known[at]) known[at] = knows(r);
        missing += known[at] ? 0 : 1;
      }
    }
    EXPECT_EQ(missing, 0U) << "ranks have not heard of it";
    // Delivers packets under way, and repetitions.
    for (int round = 0; round < 20; ++round) {
      world.datagrams()->advance_to(world.datagrams()->now_ns() + kRoundNs);
      for (int r = 0; r < world.ranks(); ++r) {
        if (!is_dead(r)) turn(r);
      }
    }
    return world.datagrams()->sent() - before;
  }

  World world;

 private:
  std::vector<bool> is_dead_;
};

TEST(Updates, OfAFailureTakeAFewPacketsForEachRank) {
  Updates updates(many_hosts(hosts_of_many, 1));
  const auto look = [&](int r) {
    updates.world.at(r).progress();
    updates.world.at(r).watchdog().examine(false);
  };
  const auto knows = [&](int r) { return updates.world.at(r).failures().has_failed(); };
  // Several find it at the same time.
  for (const int finder : {3, hosts_of_many * 2 / 3, hosts_of_many - 20}) {
    updates.world.at(finder).failures().fail_all(Code::rank_lost, "rank 5 is lost", 0);
  }
  const std::int64_t packets = updates.spread(look, knows);
  std::printf("%d hosts: %lld packets\n", hosts_of_many, static_cast<long long>(packets));
  EXPECT_LE(packets, kPacketsOfARank * hosts_of_many);
  for (int r = 0; r < hosts_of_many; ++r)
    EXPECT_EQ(updates.world.at(r).failures().tell().code, Code::rank_lost);

  // And of a loss, which half of the ranks find at the same time.
  constexpr int kLost = 5;
  for (int r = 0; r < hosts_of_many; r += 2)
    updates.world.at(r).members().job().losses().mark_gone(kLost, RankState::silent);
  const auto hears = [&](int r) { updates.world.at(r).progress(); };
  const auto has_heard = [&](int r) {
    return updates.world.at(r).members().job().ranks().state(kLost) == RankState::silent;
  };
  const std::int64_t of_loss = updates.spread(hears, has_heard);
  std::printf("%d hosts: %lld packets\n", hosts_of_many, static_cast<long long>(of_loss));
  EXPECT_LE(of_loss, (kPacketsOfARank + 1) * hosts_of_many);
}

// Ranks wait for each other in a barrier. Some of them have died unnoticed, inner nodes of the tree
// among them, and more die while the updates spread. Waiting ranks ask the ranks they wait for; a
// dead one stays silent.
TEST(Updates, ReachAllSurvivorsAlsoWhereInnerHostsHaveDied) {
  constexpr int kRanks = 48;
  for (int i = 0; i < seeds.count; ++i) {
    const std::uint64_t seed = seeds.first + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("--seed " + std::to_string(seed));
    WorldOptions options = many_hosts(kRanks, seed);
    options.datagrams.loss = 0.02;
    options.settings["UNISONO_DETECT_TIMEOUT"] = "10ms";
    options.settings["UNISONO_DETECT_TIMEOUT_HOSTS"] = "10ms";
    Updates updates(options);
    std::vector<comm::Pending> pending(kRanks);
    for (int r = 0; r < kRanks; ++r) {
      auto plan = updates.world.at(r).plan({});
      ASSERT_TRUE(plan.ok());
      ASSERT_TRUE(updates.world.at(r)
                      .start(**plan, nullptr, nullptr, pending[static_cast<std::size_t>(r)])
                      .ok());
    }
    const auto kill_some = [&] {
      updates.kill(static_cast<int>(updates.world.prng().below(job::kUpdateArity + 1)));
      updates.kill(updates.world.random_rank());
    };
    for (int d = 0; d < 2; ++d) kill_some();
    int finder = updates.world.random_rank();
    while (updates.is_dead(finder)) finder = updates.world.random_rank();
    updates.world.at(finder).failures().fail_all(Code::rank_lost, "somebody is lost", 0);
    int turns = 0;
    updates.spread(
        [&](int r) {
          if (turns++ % kRanks == 0 && turns < 4 * kRanks) kill_some();
          watch_at(updates.world.at(r).members().job(), updates.world.datagrams()->now_ns());
          updates.world.at(r).progress();
          updates.world.at(r).watchdog().examine(true);
        },
        [&](int r) { return updates.world.at(r).failures().has_failed(); });
    if (testing::Test::HasFailure()) return;
  }
}

// The first of a host that knows of it tells the others. Here it has died before a packet was out.
TEST(Updates, AreToldByAnotherRankOfTheHostWhereTheFirstHasDied) {
  WorldOptions options = many_hosts(6, 1);
  options.hosts = {0, 0, 1, 1, 2, 2};
  Updates updates(options);
  updates.kill(2);
  updates.world.at(2).failures().fail_all(Code::rank_lost, "rank 5 is lost", 0);
  updates.world.at(3).failures().adopt();
  ASSERT_TRUE(updates.world.at(3).failures().has_failed());
  updates.world.at(3).members().job().losses().mark_gone(2, RankState::dead);
  updates.world.at(3).members().job().events().raise();
  updates.spread(
      [&](int r) {
        updates.world.at(r).progress();
        updates.world.at(r).watchdog().examine(false);
      },
      [&](int r) { return updates.world.at(r).failures().has_failed(); });
}

void leave_one_after_the_other(const WorldOptions& options) {
  Updates updates(options);
  for (const int leaver : {5, hosts_of_many / 2, hosts_of_many - 1}) {
    const auto hears = [&](int r) { updates.world.at(r).progress(); };
    const auto has_heard = [&](int r) {
      const RankState state = updates.world.at(r).members().job().ranks().state(leaver);
      return r == leaver || state == RankState::left;
    };
    const std::int64_t before = updates.world.datagrams()->sent();
    updates.world.at(leaver).members().job().losses().tell_leave();
    updates.spread(hears, has_heard);
    const std::int64_t packets = updates.world.datagrams()->sent() - before;
    std::printf("%d hosts: %lld packets\n", hosts_of_many, static_cast<long long>(packets));
    EXPECT_GE(packets, hosts_of_many - 1);
    EXPECT_LE(packets, kPacketsOfARank * hosts_of_many);
  }
}

// A rank that leaves tells each rank of other hosts itself. Where it has no room for so many
// packets, it asks whether the first have arrived.
TEST(Updates, OfALeaveIsAPacketForEachOtherRank) {
  leave_one_after_the_other(many_hosts(hosts_of_many, 1));
}

// Ranks that have left acknowledge nothing, so packets to them find no place among the others.
TEST(Updates, OfALeaveReachRanksThatHaveLeftWhereThePoolIsFull) {
  WorldOptions options = many_hosts(hosts_of_many, 1);
  options.pool_packets = 16;
  leave_one_after_the_other(options);
}

// A minority that shrinks gives up, and each of it tells what it knows once more.
TEST(Updates, OfAShrinkThatIsGivenUpTakeAFewPacketsForEachRankAndLoss) {
  constexpr int kRanks = 48;
  constexpr int kLost = 28;
  Updates updates(many_hosts(kRanks, 1));
  for (int lost = 0; lost < kLost; ++lost) updates.kill(lost);
  const auto hears = [&](int r) { updates.world.at(r).progress(); };
  const auto knows_all = [&](int r) {
    for (int lost = 0; lost < kLost; ++lost) {
      if (updates.world.at(r).members().job().ranks().state(lost) == RankState::present)
        return false;
    }
    return true;
  };
  for (int r = kLost; r < kRanks; ++r) {
    for (int lost = 0; lost < kLost; ++lost) {
      updates.world.at(r).members().job().losses().mark_gone(lost, RankState::silent);
    }
  }
  updates.spread(hears, knows_all);
  std::vector<std::optional<base::Error>> errors(kRanks);
  for (int r = kLost; r < kRanks; ++r) ASSERT_TRUE(updates.world.at(r).begin_shrink().ok());
  const auto shrinks = [&](int r) {
    hears(r);
    auto& error = errors[static_cast<std::size_t>(r)];
    if (error) return;
    const auto turn = updates.world.at(r).step_shrink();
    if (!turn) error = turn.error();
  };
  const std::int64_t packets = updates.spread(
      shrinks, [&](int r) { return errors[static_cast<std::size_t>(r)].has_value(); });
  constexpr int kLeft = kRanks - kLost;
  std::printf("%d of %d hosts: %lld packets\n", kLeft, kRanks, static_cast<long long>(packets));
  EXPECT_LE(packets, 8 * kLeft * kLost);
}

// ---- the tree -----------------------------------------------------------------------------------

// Reaches all living ranks with few messages, if all know which ranks live.
TEST(NewsTree, ConnectsAllThatLive) {
  base::Prng prng(1);
  for (int round = 0; round < 200; ++round) {
    const int hosts = 1 + static_cast<int>(prng.below(300));
    std::vector<bool> lives(static_cast<std::size_t>(hosts), true);
    for (auto deaths = prng.below(static_cast<std::uint64_t>(hosts)); deaths > 0; --deaths) {
      lives[prng.below(lives.size())] = false;
    }
    int first = 0;
    while (first < hosts && !lives[static_cast<std::size_t>(first)]) ++first;
    if (first == hosts) continue;
    std::set<int> reached{first};
    std::vector<int> open{first};
    std::ptrdiff_t told = 0;
    while (!open.empty()) {
      const int host = open.back();
      open.pop_back();
      for (const int next : job::update_neighbours(
               host, hosts, [&](int h) { return lives[static_cast<std::size_t>(h)]; })) {
        EXPECT_NE(next, host);
        EXPECT_TRUE(lives[static_cast<std::size_t>(next)]);
        ++told;
        if (reached.insert(next).second) open.push_back(next);
      }
    }
    const std::ptrdiff_t living = std::ranges::count(lives, true);
    EXPECT_EQ(std::ssize(reached), living);
    EXPECT_EQ(told, 2 * (living - 1));  // both ends of each edge of a tree
  }
}

}  // namespace
}  // namespace unisono::test::updates_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  unisono::test::updates_test::seeds.read(argc, argv);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--hosts") {
      unisono::test::updates_test::hosts_of_many = std::atoi(argv[i + 1]);
    }
  }
  return RUN_ALL_TESTS();
}
