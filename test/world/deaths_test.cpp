// SPDX-License-Identifier: BSD-3-Clause
// Ranks and whole hosts die, hang or are cut off, in one direction or both, while random
// collectives are under way, several at once, also where paths carry less than full datagrams, and
// multicast may cease to be carried. Of every survivor each call ends, and soon: with the right
// result, or with an error that names a rank which is lost. Then the survivors shrink, agree on who
// they are, and go on. On one host, between hosts of a rank each, and between hosts of several. A
// seed decides it all: a failure prints the command that repeats it; `--seeds N` (label slow) runs
// many.
#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scale.hpp"
#include "world/random_jobs.hpp"
#include "world/survivors.hpp"

namespace unisono::test::deaths_test {
namespace {

using base::Code;

const Seeds seeds = Seeds::asked(300);

enum class Place : std::uint8_t { one_host, single_ranks, several_ranks };

WorldOptions options_of(std::uint64_t seed, Place place, base::Prng& prng) {
  WorldOptions options;
  options.ranks = 2 + static_cast<int>(prng.below(7));
  options.network.seed = seed;
  options.settings = {
      {"UNISONO_DETECT_TIMEOUT", "10ms"},
      {"UNISONO_DETECT_TIMEOUT_HOSTS", "10ms"},
      {"UNISONO_BUFFERS", prng.below(8) == 0 ? "8M" : "512K"},
      {"UNISONO_CHANNELS", std::to_string(2 + prng.below(4))},
      {"UNISONO_FIRST_SEQUENCE", sequence_before_the_wrap(prng.below(20))},
  };
  if (place == Place::one_host) {
    options.settings["UNISONO_ENGINE"] = prng.below(2) == 0 ? "inline" : "helping";
    options.settings["UNISONO_SINGLE_COPY_FROM"] = prng.below(2) == 0 ? "64" : "auto";
    return options;
  }
  for (int r = 0; r < options.ranks; ++r) options.hosts.push_back(r);
  if (place == Place::several_ranks) options.hosts = place_on_hosts(options.ranks, prng);
  options.virtual_datagrams = true;
  options.datagrams.seed = seed;
  options.datagrams.loss = prng.below(3) == 0 ? 0.05 : 0;
  options.datagrams.duplicates = prng.below(2) == 0 ? 0.05 : 0;
  options.datagrams.reorder = prng.below(4) != 0;
  options.datagrams.multicast = prng.below(2) == 0;
  if (options.datagrams.multicast && prng.below(2) == 0) {
    options.settings["UNISONO_ALGORITHM"] = kMulticasting;
  }
  options.pool_packets = prng.below(4) == 0 ? 16 : 256;
  return options;
}

std::int64_t whole_segments(std::int64_t bytes) {
  return (bytes + memory::kSegmentAlignment - 1) / memory::kSegmentAlignment *
         memory::kSegmentAlignment;
}

// The ranks that errors say are lost.
std::vector<int> named_in(const std::string& message) {
  constexpr std::string_view kLost = " is lost";
  std::vector<int> ranks;
  for (auto at = message.find(kLost); at != std::string::npos; at = message.find(kLost, at + 1)) {
    const auto space = message.rfind(' ', at - 1);
    ranks.push_back(std::atoi(message.c_str() + space));
  }
  return ranks;
}

// Events that happen at most once in a scenario, and the results of the calls.
struct Fates {
  int deaths = 0, hangs = 0, cuts = 0, one_way = 0, narrow = 0;
  int completed = 0, failed = 0, overdue = 0, groups = 0;
};

class Doomed {
 public:
  Doomed(const WorldOptions& options, base::Prng& prng)
      : survivors_(options),
        world_(survivors_.world),
        prng_(prng),
        multicast_end_(prng),
        narrow_paths_(prng),
        options_(options),
        next_(static_cast<std::size_t>(options.ranks)),
        refused_(next_.size()),
        given_out_(world_.given_out(0)) {
    const std::size_t jobs = 6 + prng.below(10);
    for (std::size_t j = 0; j < jobs; ++j) jobs_.emplace_back(options.ranks, prng, 6'000);
  }

  void run(Fates& fates) {
    const auto blows = 1 + prng_.below(4);
    for (std::uint64_t b = 0; b < blows; ++b) {
      const std::uint64_t most[] = {50, 500, 4'000};
      const std::uint64_t steps = prng_.below(most[prng_.below(3)]);
      for (std::uint64_t s = 0; s < steps && !all_ended(); ++s) step();
      strike(fates);
    }
    finish();
    if (testing::Test::HasFatalFailure()) return;
    compare(fates);
    jobs_.clear();                                       // what has not ended is withdrawn
    for (const int rank : hung_) survivors_.kill(rank);  // by the one who has started the job
    go_on(fates);
    if (options_.hosts.empty()) expect_no_memory_left();
  }

 private:
  std::vector<int> living() {
    std::vector<int> ranks;
    for (int r = 0; r < world_.ranks(); ++r) {
      if (!survivors_.at(r).dead) ranks.push_back(r);
    }
    return ranks;
  }
  int host_of(int rank) const {
    return options_.hosts.empty() ? 0 : options_.hosts[static_cast<std::size_t>(rank)];
  }

  void strike(Fates& fates) {
    const std::vector<int> ranks = living();
    const int victim = ranks[prng_.below(ranks.size())];
    const std::uint64_t kind = prng_.below(8);
    if (kind < 3 && !options_.hosts.empty()) {
      const int other = world_.random_rank();
      if (host_of(victim) == host_of(other)) return;
      const bool one_way = prng_.below(2) == 0;
      cut_hosts(host_of(victim), host_of(other), kind == 0, one_way);
      ++(one_way ? fates.one_way : fates.cuts);
      return;
    }
    const bool is_whole_host = kind == 3 && !options_.hosts.empty();
    const auto is_struck = [&](int rank) {
      return is_whole_host ? host_of(rank) == host_of(victim) : rank == victim;
    };
    if (std::ranges::all_of(ranks, is_struck)) return;
    for (const int rank : ranks) {
      if (is_struck(rank)) strike(rank, kind == 7, fates);
    }
  }

  void strike(int rank, bool hangs, Fates& fates) {
    lost_.insert(rank);
    if (hangs) {
      survivors_.at(rank).dead = true;  // it makes no step any more, and its datagrams wait
      hung_.insert(rank);
      ++fates.hangs;
    } else {
      survivors_.kill(rank);
      ++fates.deaths;
    }
  }

  // One link between them, or all; from the left to the right, or both ways.
  void cut_hosts(int left, int right, bool all, bool one_way) {
    has_cuts_ = true;
    bool is_cut = false;
    for (int l = 0; l < world_.ranks(); ++l) {
      for (int r = 0; r < world_.ranks(); ++r) {
        if (host_of(l) != left || host_of(r) != right || (is_cut && !all)) continue;
        if (one_way) {
          world_.datagrams()->cut_one_way(l, r);
        } else {
          survivors_.cut(l, r);
        }
        lost_.insert({l, r});
        is_cut = true;
      }
    }
  }

  // One step of somebody.
  void step() {
    multicast_end_.step(world_);
    narrow_paths_.step(world_);
    survivors_.pass_time();
    const int rank = world_.random_rank();
    if (survivors_.at(rank).dead) return;
    if (prng_.below(8) == 0) survivors_.watch(rank);
    if (prng_.below(8) == 0) start_next(rank);
    comm::Communicator& communicator = world_.at(rank);
    if (communicator.progress()) quiet_ = 0;
    communicator.watchdog().examine(prng_.below(16) == 0);
    ++quiet_;
  }

  void start_next(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    if (refused_[r] || next_[r] == jobs_.size()) return;
    quiet_ = 0;
    const base::Status status = jobs_[next_[r]].start(world_.at(rank));
    if (status.ok()) {
      ++next_[r];
    } else {
      refused_[r] = true;
      expect_names_lost(status.error());
    }
  }

  bool all_ended() {
    for (int rank = 0; rank < world_.ranks(); ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      if (survivors_.at(rank).dead) continue;
      if (!refused_[r] && next_[r] < jobs_.size()) return false;
      for (std::size_t j = 0; j < next_[r]; ++j) {
        if (jobs_[j].at(rank).state == comm::Pending::State::running) return false;
      }
    }
    return true;
  }

  // Every call of the survivors ends. For a rank that hangs it takes the deadline of the call, if
  // nobody on another host has asked it anything.
  void finish() {
    constexpr int kMostSteps = 300'000;
    constexpr int kQuietSteps = 5'000;  // 100 ms: all that can be found out has been
    for (int steps = 0; steps < kMostSteps && !all_ended(); ++steps) {
      step();
      if (quiet_ < kQuietSteps || hung_.empty() || is_overdue_) continue;
      is_overdue_ = true;
      world_.set({{"UNISONO_TIMEOUT", "1ns"}});
    }
    ASSERT_TRUE(all_ended()) << "a survivor's call does not end";
  }

  void compare(Fates& fates) {
    for (const int rank : living()) {
      const std::size_t started = next_[static_cast<std::size_t>(rank)];
      bool has_failed = false;
      for (std::size_t j = 0; j < started; ++j) {
        if (jobs_[j].is_complete_at(rank)) {
          EXPECT_TRUE(jobs_[j].is_right_at(rank)) << "operation " << j;
          ++fates.completed;
        } else {
          has_failed = true;
          ++fates.failed;
        }
      }
      if (has_failed) expect_names_lost(world_.at(rank).failures().tell());
    }
    fates.overdue += is_overdue_ ? 1 : 0;
    fates.narrow += narrow_paths_.have_come() ? 1 : 0;
  }

  // On a network that loses packets, one that lives may be taken for lost in so short a time.
  void expect_names_lost(const base::Error& error) const {
    if (is_overdue_ && error.code == Code::timeout) return;
    EXPECT_EQ(error.code, Code::rank_lost) << error.message;
    const std::vector<int> named = named_in(error.message);
    EXPECT_EQ(named.size(), 1U) << error.message;
    if (options_.datagrams.loss != 0) return;
    for (const int rank : named) EXPECT_TRUE(lost_.contains(rank)) << error.message;
  }

  // All survivors that get a new communicator get the same one. If there were only deaths, it has
  // all living ranks. Or none gets one, because too few hosts are left to be sure.
  void go_on(Fates& fates) {
    ASSERT_TRUE(survivors_.run()) << "shrink does not end";
    comm::Communicator* const group = survivors_.expect_one_group();
    for (const int rank : living()) {
      const Survivor& self = survivors_.at(rank);
      if (self.error) {
        EXPECT_EQ(self.error->code, Code::rank_lost) << self.error->message;
      }
    }
    if (group == nullptr) return;
    ++fates.groups;
    if (!has_cuts_ && options_.datagrams.loss == 0) {
      EXPECT_EQ(group->members().job_ranks(), living());
    }
    if (!has_cuts_) survivors_.expect_sums();
  }

  // All memory given out since the job began is free again once the survivors have ended their
  // communicators.
  void expect_no_memory_left() {
    const std::int64_t before =
        given_out_ -
        whole_segments(comm::plan_segment(world_.ranks(), world_.settings(), world_.links()).bytes);
    for (const int rank : living()) {
      survivors_.at(rank).made.reset();
      world_.end(rank);
    }
    EXPECT_EQ(world_.given_out(0), before);
  }

  Survivors survivors_;
  World& world_;
  base::Prng& prng_;
  MulticastEnd multicast_end_;
  NarrowPaths narrow_paths_;
  const WorldOptions& options_;
  std::deque<RandomJob> jobs_;
  std::vector<std::size_t> next_;  // by rank: the job it starts next
  std::vector<bool> refused_;      // by rank: no more of them
  std::int64_t given_out_;         // of the first host's memory, at the start
  std::set<int> lost_;             // dead, hung, or at an end of a link that was cut
  std::set<int> hung_;
  bool has_cuts_ = false;
  bool is_overdue_ = false;
  int quiet_ = 0;  // steps since anything began or ended
};

void run_scenarios(Place place, const char* test) {
  Fates fates;
  const std::int64_t count = harness::scaled(seeds.count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t seed = seeds.first + static_cast<std::uint64_t>(i);
    SCOPED_TRACE(std::string("repeat with: world_scenarios --gtest_filter=Deaths.") + test +
                 " --seed " + std::to_string(seed));
    base::Prng prng(seed);
    const WorldOptions options = options_of(seed, place, prng);
    Doomed(options, prng).run(fates);
    if (testing::Test::HasFailure()) return;
  }
  std::printf(
      "%d deaths, %d hangs, %d cuts, %d one way, %d with narrow paths: %d calls complete, "
      "%d failed; %d overdue, %d groups\n",
      fates.deaths, fates.hangs, fates.cuts, fates.one_way, fates.narrow, fates.completed,
      fates.failed, fates.overdue, fates.groups);
  if (count < 50) return;
  // Or the blows were not what this test means them to be.
  EXPECT_GT(fates.deaths, count / 4);
  EXPECT_GT(fates.hangs, count / 20);
  EXPECT_EQ(fates.cuts > count / 20, place != Place::one_host);
  EXPECT_EQ(fates.one_way > count / 20, place != Place::one_host);
  EXPECT_EQ(fates.narrow > count / 10, place != Place::one_host);
  EXPECT_GT(fates.completed, count);
  EXPECT_GT(fates.failed, count);
  EXPECT_GT(fates.groups, count / 2);
}

TEST(Deaths, OnOneHost) { run_scenarios(Place::one_host, "OnOneHost"); }
TEST(Deaths, BetweenHosts) { run_scenarios(Place::single_ranks, "BetweenHosts"); }
TEST(Deaths, BetweenHostsOfSeveral) {
  run_scenarios(Place::several_ranks, "BetweenHostsOfSeveral");
}

}  // namespace
}  // namespace unisono::test::deaths_test
