// SPDX-License-Identifier: BSD-3-Clause
// What ranks of different hosts tell each other besides messages: how far they have come, that they
// cannot go on, that they have left. On a network that loses, doubles and reorders.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "harness/world.hpp"
#include "world/survivors.hpp"

namespace unisono::test::hosts_test {
namespace {

using base::Code;
using job::RankState;

constexpr int kRanks = 5;

WorldOptions two_hosts(std::uint64_t seed) {
  WorldOptions options;
  options.ranks = kRanks;
  options.hosts = {0, 1, 0, 1, 1};
  options.network.seed = seed;
  options.virtual_datagrams = true;
  options.datagrams.seed = seed;
  options.datagrams.loss = 0.1;
  options.datagrams.duplicates = 0.05;
  options.datagrams.reorder = true;
  options.settings = {{"UNISONO_DETECT_TIMEOUT", "10ms"},
                      {"UNISONO_DETECT_TIMEOUT_HOSTS", "10ms"},
                      {"UNISONO_CHANNELS", "4"}};
  return options;
}

// Until the condition holds, within a bound that only a defect can reach.
bool step_until(World& world, const std::function<bool()>& condition) {
  for (int steps = 0; steps < 1'000'000; ++steps) {
    if (condition()) return true;
    world.step();
  }
  return false;
}

plan::Call barrier() { return {}; }

bool run_barriers(World& world, int count) {
  const std::vector<const void*> inputs(kRanks, nullptr);
  const std::vector<void*> outputs(kRanks, nullptr);
  for (int i = 0; i < count; ++i) {
    if (!world.run(barrier(), inputs, outputs)) return false;
  }
  return true;
}

constexpr int kBarriers = 64;

// Packets of them without loss.
std::uint64_t packets_of_barriers(int channels) {
  WorldOptions options = two_hosts(1);
  options.datagrams.loss = 0;
  options.settings["UNISONO_CHANNELS"] = std::to_string(channels);
  World world(options);
  EXPECT_TRUE(run_barriers(world, kBarriers));
  std::uint64_t packets = 0;
  for (int r = 0; r < kRanks; ++r) packets += world.reliable_at(r).counts().packets;
  return packets;
}

// The first ranks of both hosts send to each other, so each rank tells that of the other host every
// half of the channels. It tells the others a quarter as often.
TEST(HostsWorld, CreditIsToldEveryHalfOfTheChannels) {
  constexpr int kSenders = 2 + 3, kOthers = 2 * 2 + 3 * 1;
  const auto told = [](int channels) {
    const int half = channels / 2;
    return kSenders * kBarriers / half + kOthers * kBarriers / (engine::kFarTurns * half);
  };
  EXPECT_EQ(packets_of_barriers(4) - packets_of_barriers(16),
            static_cast<std::uint64_t>(told(4) - told(16)));
}

TEST(HostsWorld, AFailureReachesAllHosts) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(two_hosts(seed));
    ASSERT_TRUE(run_barriers(world, 3));
    world.at(3).failures().refuse(Code::argument, "unisono_broadcast: root is 9");
    const auto all_know = [&world] {
      for (int r = 0; r < kRanks; ++r) {
        world.at(r).failures().adopt();
        if (!world.at(r).failures().has_failed()) return false;
      }
      return true;
    };
    ASSERT_TRUE(step_until(world, all_know));
    for (int r = 0; r < kRanks; ++r) {
      const base::Error error = world.at(r).failures().tell();
      EXPECT_EQ(error.code, r == 3 ? Code::argument : Code::peer_argument);
      if (r != 3) {
        EXPECT_NE(error.message.find("invalid call on rank 3: unisono_broadcast: root is 9"),
                  std::string::npos)
            << error.message;
      }
    }
  }
}

// Ranks 0 and 1 find different failures at the same time; both hosts settle on the earlier one.
TEST(HostsWorld, TheEarliestFailureCounts) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(two_hosts(seed));
    world.at(0).failures().fail_all(Code::mismatch, "of operation 7", 7);
    world.at(1).failures().fail_all(Code::timeout, "of operation 5", 5);
    const auto same = [&world](int rank) {
      world.at(rank).failures().adopt();
      return world.at(rank).failures().has_failed() &&
             world.at(rank).failures().tell().message.find("of operation 5") != std::string::npos;
    };
    EXPECT_TRUE(
        step_until(world, [&] { return same(0) && same(1) && same(2) && same(3) && same(4); }));
  }
}

TEST(HostsWorld, ReportsThatFollowEachOtherLowerTheEnd) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(two_hosts(seed));
    for (const std::uint64_t index : {90, 70, 50, 30, 10}) {
      world.at(4).failures().fail_all(Code::timeout, "late", index);
    }
    // The fourth report is about all operations: a barrier that has not begun fails as well.
    const std::vector<const void*> inputs(kRanks, nullptr);
    comm::Pending pending;
    auto plan = world.at(0).plan(barrier());
    ASSERT_TRUE(plan.ok());
    ASSERT_TRUE(world.at(0).start(**plan, nullptr, nullptr, pending).ok());
    EXPECT_TRUE(step_until(world, [&] {
      world.at(0).failures().adopt();
      return pending.state == comm::Pending::State::failed;
    }));
  }
}

TEST(HostsWorld, ARankThatLeavesIsKnownToHaveLeft) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(two_hosts(seed));
    ASSERT_TRUE(run_barriers(world, 5));
    world.at(1).publish_progress();
    world.at(1).members().job().leave();
    const auto left = [&world](int rank) {
      return world.at(rank).members().job().ranks().state(1) == RankState::left;
    };
    EXPECT_TRUE(step_until(world, [&] { return left(0) && left(2) && left(3) && left(4); }));
  }
}

// ---- outages: with the default limits, 1 s until a rank is suspected, 10 s until it is lost
// ------

constexpr std::int64_t kSuspectNs = base::kSecond;
constexpr std::int64_t kLostNs = 10 * base::kSecond;

std::size_t count_of(const std::string& what, const std::string& text) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// Hosts of two ranks each, with a barrier under way between which nothing passes any more.
class Outage {
 public:
  Outage() : survivors_(options()), pending_(kRanks) {
    cut_or_mend(true);
    for (int r = 0; r < kRanks; ++r) {
      auto plan = at(r).plan(barrier());
      EXPECT_TRUE(plan.ok());
      EXPECT_TRUE(
          at(r).start(**plan, nullptr, nullptr, pending_[static_cast<std::size_t>(r)]).ok());
    }
    begin_ns_ = survivors_.now();
  }

  void mend() { cut_or_mend(false); }
  std::int64_t passed_ns() { return survivors_.now() - begin_ns_; }
  comm::Communicator& at(int rank) { return survivors_.world.at(rank); }
  comm::Pending::State state(int rank) { return pending_[static_cast<std::size_t>(rank)].state; }
  bool all(comm::Pending::State state) {
    return std::ranges::all_of(pending_,
                               [state](const comm::Pending& p) { return p.state == state; });
  }
  // All ranks wait, as who sleeps does, and look around a thousand times a second.
  bool wait(const std::function<bool()>& ended, std::int64_t until_ns) {
    while (!ended()) {
      if (passed_ns() > until_ns) return false;
      survivors_.world.datagrams()->advance_to(survivors_.now() + base::kMillisecond);
      for (int r = 0; r < kRanks; ++r) {
        at(r).progress();
        survivors_.watch(r);
        at(r).watchdog().examine(true);
      }
    }
    return true;
  }
  void let_pass(std::int64_t time_ns) {
    EXPECT_FALSE(wait([] { return false; }, time_ns));
  }

 private:
  static constexpr int kRanks = 4;
  static WorldOptions options() {
    WorldOptions options;
    options.ranks = kRanks;
    options.hosts = {0, 0, 1, 1};
    options.virtual_datagrams = true;
    return options;
  }
  void cut_or_mend(bool cut) {
    for (const int left : {0, 1}) {
      for (const int right : {2, 3}) {
        if (cut) survivors_.world.datagrams()->cut(left, right);
        if (!cut) survivors_.world.datagrams()->mend(left, right);
      }
    }
  }

  Survivors survivors_;
  std::vector<comm::Pending> pending_;
  std::int64_t begin_ns_ = 0;
};

using State = comm::Pending::State;

TEST(HostsWorld, AnOutageOfSecondsIsToldOnceAndTheJobGoesOn) {
  Outage outage;
  base::set_log_level(base::LogLevel::warn);
  testing::internal::CaptureStderr();
  outage.let_pass(kSuspectNs / 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  outage.let_pass(3 * base::kSecond);
  EXPECT_TRUE(outage.all(State::running));
  outage.mend();
  EXPECT_TRUE(outage.wait([&] { return outage.all(State::complete); }, kLostNs));
  outage.let_pass(2 * kLostNs);
  const std::string log = testing::internal::GetCapturedStderr();
  // The leaders of their hosts; the others wait for nobody on another host.
  for (const std::string rank : {"rank 0 ", "rank 2 "}) {
    EXPECT_EQ(count_of(rank + "has not answered for ", log), 1U) << log;
    EXPECT_EQ(count_of(rank + "is no longer suspected", log), 1U) << log;
  }
  EXPECT_EQ(count_of("waiting until 10s before it is declared lost", log),
            count_of("has not answered", log));
  for (int r = 0; r < 4; ++r) {
    EXPECT_EQ(outage.at(0).members().job().ranks().state(r), RankState::present);
    EXPECT_EQ(outage.at(2).members().job().ranks().state(r), RankState::present);
  }
}

TEST(HostsWorld, AnOutageThatLastsIsALossWithinTheLimitAndAFifth) {
  Outage outage;
  outage.let_pass(kLostNs);
  EXPECT_TRUE(outage.all(State::running));
  // It is asked for the last time a moment before the limit, and looked at in a fifth of a second.
  EXPECT_TRUE(outage.wait([&] { return outage.all(State::failed); }, kLostNs + base::kSecond / 2));
  for (int r = 0; r < 4; ++r) {
    const base::Error error = outage.at(r).failures().tell();
    EXPECT_EQ(error.code, Code::rank_lost);
    EXPECT_NE(error.message.find(r < 2 ? "rank 2 is lost (it does not answer"
                                       : "rank 0 is lost (it does not answer"),
              std::string::npos)
        << error.message;
  }
}

}  // namespace
}  // namespace unisono::test::hosts_test
