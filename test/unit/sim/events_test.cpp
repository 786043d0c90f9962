// SPDX-License-Identifier: BSD-3-Clause
// The event simulation: as the sweep without disturbances, and each disturbance by hand.
#include "sim/events.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "machines.hpp"
#include "random_schedule.hpp"
#include "sim/event_queue.hpp"
#include "sim/goal/goal_file.hpp"
#include "sim/sweep.hpp"

namespace unisono::sim::events_test {
namespace {

using topology::fat_tree::Placement;
using topology::fat_tree::Tree;

ProgramSet programs_for(schedule::Collective collective, std::string_view name, int ranks,
                        std::int64_t count, MachineKind kind = MachineKind::plain) {
  return programs_of(set_of(*algorithm::find(collective, name), {collective, ranks, 0, count}),
                     test_machine(kind));
}
ProgramSet barrier_of(int ranks) {
  return programs_for(schedule::Collective::barrier, "dissemination", ranks, 0);
}

TEST(Events, AgreeWithTheSweepOnRandomSchedules) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto set = random_set(2 + static_cast<int>(seed % 9), 100, seed);
    const ProgramSet programs = programs_of(set, test_machine(static_cast<MachineKind>(seed % 4)));
    EXPECT_EQ(simulate_events(programs, {})->outcome, sweep_ranks(programs, {}));
  }
}

// A network whose links have no limit, and one whose links nobody shares.
TEST(Events, AgreeWithTheSweepWhereNoLinkIsShared) {
  const Placement placement = *place_around(*Tree::make(4, 2), std::vector<int>{});
  for (const Contention contention : {Contention::wormhole, Contention::sharing}) {
    for (const char* name : {"ring", "prefix-send", "recursive-doubling"}) {
      const ProgramSet programs =
          programs_for(schedule::Collective::allgather, name, 16, 100, MachineKind::gapless);
      EventOptions options;
      options.placement = &placement;
      options.network.contention = contention;
      options.network.link_ns_per_byte = 0.3;
      const auto simulated = simulate_events(programs, options);
      EXPECT_EQ(simulated->outcome, sweep(programs)) << name;
      EXPECT_EQ(simulated->held_up, 0) << name;
    }
  }
}

TEST(Events, AreTheSameForTheSameSeed) {
  const ProgramSet programs = barrier_of(33);
  EventOptions options;
  options.skew = 3e6;
  options.loss = 0.1;
  options.repair = 5e6;
  options.noise = *Noise::random(to_time(10'000), to_time(500), 3);
  const auto first = *simulate_events(programs, options);
  EXPECT_EQ(*simulate_events(programs, options), first);
  options.seed = 2;
  EXPECT_FALSE(*simulate_events(programs, options) == first);
  EXPECT_GT(first.outcome.finish, sweep(programs).finish);
  EXPECT_GT(first.lost, 0);
}

// Two messages of 1000 bytes into one node: its link takes 2 ns a byte, a sender 0.37.
schedule::Schedule sender(int rank) {
  schedule::Builder b({schedule::Collective::reduce, 3, 0, 125}, rank);
  b.send(0, rank - 1, schedule::input(0, 125));
  return std::move(b).take();
}
ProgramSet two_into_one() {
  schedule::Builder root({schedule::Collective::reduce, 3, 0, 125}, 0);
  for (const int source : {1, 2}) root.wait(root.slot(source, 125));
  return programs_of({std::move(root).take(), sender(1), sender(2)},
                     test_machine(MachineKind::gapless));
}

TEST(Events, MessagesThatMeetShareALinkOrWaitForIt) {
  const ProgramSet programs = two_into_one();
  const Placement placement = *place_around(*Tree::make(4, 1), std::vector<int>{}, 3);
  EventOptions options;
  options.placement = &placement;
  options.network.link_ns_per_byte = 2;
  // C + o, then both messages pass the link of 2 ns a byte, then L and r of the second.
  const double sent = 41 + 310, both = 2 * 2 * 1000.0, rest = 1700;
  for (const Contention contention : {Contention::sharing, Contention::wormhole}) {
    options.network.contention = contention;
    const auto simulated = simulate_events(programs, options);
    const double r = 120 + 0.7 * 1000;
    const double receptions = contention == Contention::sharing ? 2 * r : r;
    EXPECT_NEAR(to_ns(simulated->outcome.finish), sent + both + rest + receptions, 1);
    EXPECT_GT(simulated->held_up, 0);
  }
}

TEST(Events, FarNodesAndSwitchesTakeLonger) {
  const ProgramSet programs = two_into_one();
  const Placement placement{*Tree::make(2, 3), {0, 1, 4}, {}};
  EventOptions options;
  options.placement = &placement;
  const Time near = simulate_events(programs, options)->outcome.finish;
  EXPECT_EQ(near, sweep(programs).finish);
  options.network.far_ns_per_byte = {0, 0, 0, 1};
  options.network.switch_delay_ns = 35;
  // From node 4 over five switches; the first message is received before.
  EXPECT_EQ(simulate_events(programs, options)->outcome.finish,
            near + to_time(1000 + 5 * 35) - to_time(120 + 0.7 * 1000));
}

TEST(Events, BarriersKeepRanksTogether) {
  const ProgramSet programs =
      programs_for(schedule::Collective::allgather, "ring", 8, 10, MachineKind::gapless);
  EventOptions options;
  const Time free = simulate_events(programs, options)->outcome.finish;
  options.barrier_after = 1;
  options.barrier = to_time(10'000);
  const auto simulated = simulate_events(programs, options);
  EXPECT_EQ(simulated->barriers, 7);
  EXPECT_EQ(simulated->outcome.finish, free + 7 * options.barrier);
  // The root of a reduction receives, others only send: they have ended, and do not hold it up.
  EXPECT_TRUE(simulate_events(two_into_one(), options).ok());
  // Ranks of a scan wait for each other while some are in the barrier.
  const ProgramSet scan = programs_for(schedule::Collective::allreduce, "gather-release", 5, 4);
  const auto stuck = simulate_events(scan, options);
  EXPECT_TRUE(stuck.ok() || stuck.error().message.find("barriers never end") == 0);
}

// A barrier that waits for a rank's end does not end before it.
TEST(Events, BarriersWaitForRanksThatEndLater) {
  const auto traces = parse_goal(
      "num_ranks 3\nrank 0 {\nrecv 8b from 1\nrecv 8b from 2\n}\n"
      "rank 1 {\nsend 8b to 0\n}\nrank 2 {\nsend 8b to 0\ncalc 900000\n}\n",
      "g");
  ASSERT_TRUE(traces.ok()) << traces.error().message;
  const ProgramSet programs = ProgramSet::compile_traces(*traces, test_machine());
  EventOptions options;
  options.barrier_after = 1;
  options.barrier = to_time(10);
  const auto simulated = simulate_events(programs, options);
  ASSERT_TRUE(simulated.ok());
  EXPECT_EQ(simulated->barriers, 2);
  const auto& ends = simulated->outcome.by_rank;
  EXPECT_GT(ends[2], to_time(900'000));
  EXPECT_GT(ends[0], ends[2] + 2 * options.barrier) << "two barriers follow";
  // Ranks begin apart: one ends when another has been in a barrier for long.
  options.skew = to_time(1'000'000);
  for (options.seed = 1; options.seed <= 20; ++options.seed) {
    const auto apart = simulate_events(programs, options);
    ASSERT_TRUE(apart.ok());
    EXPECT_EQ(apart->outcome.finish, apart->outcome.by_rank[0]);
  }
}

TEST(Events, TimelinesHaveEveryStep) {
  const ProgramSet programs = barrier_of(8);
  std::vector<Activity> seen;
  EventOptions options;
  options.observe = [&](const Activity& activity) { seen.push_back(activity); };
  const auto simulated = simulate_events(programs, options);
  EXPECT_EQ(static_cast<std::int64_t>(seen.size()), programs.step_count());
  for (const Activity& each : seen) {
    EXPECT_LE(each.begin, each.end);
    EXPECT_LE(each.end, simulated->outcome.finish);
  }
}

TEST(EventQueue, OrdersByTimeAndThenByArrival) {
  EventQueue queue;
  base::Prng random(1);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> expected, popped;
  std::uint64_t now = 0;
  std::uint32_t number = 0;
  std::vector<std::vector<std::uint32_t>> by_time(3000);
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t time = now + random.below(40);
    if (time < by_time.size()) {
      by_time[time].push_back(number);
      queue.push({time, 0, number++, EventKind::arrive});
    }
    if (random.below(3) > 0 && !queue.empty()) {
      const Event event = queue.pop();
      now = event.time;
      popped.emplace_back(event.time, event.what);
    }
  }
  while (!queue.empty()) {
    const Event event = queue.pop();
    popped.emplace_back(event.time, event.what);
  }
  for (std::uint64_t time = 0; time < by_time.size(); ++time) {
    for (const std::uint32_t each : by_time[time]) expected.emplace_back(time, each);
  }
  EXPECT_EQ(popped, expected);
}

TEST(Noise, DelaysWorkThatADetourMeets) {
  const Noise noise = *Noise::parse("# measured\n100 10\n\n200 5 # two\n", "t");
  // In picoseconds; the trace repeats after 205 ns and 1 ps.
  EXPECT_EQ(noise.end_of(0, 100'000, 0), 100'000);
  EXPECT_EQ(noise.end_of(0, 100'001, 0), 110'001);
  EXPECT_EQ(noise.end_of(105'000, 1, 0), 110'001);
  EXPECT_EQ(noise.end_of(0, 1, 105'000), 5'001);
  EXPECT_EQ(noise.end_of(0, 0, 105'000), 0);
  EXPECT_EQ(noise.end_of(0, 200'000, 0), 215'000);
}

TEST(Noise, RefusesWhatIsNoTrace) {
  EXPECT_FALSE(Noise::fixed(100, 100).ok());
  EXPECT_TRUE(Noise::fixed(100, 99).ok());
  EXPECT_NEAR(Noise::random(1000, 250, 1)->share(), 0.2, 0.01);
  for (const auto& [text, message] :
       {std::pair{"", "t:1: expected a detour"},
        {"5", "t:1: expected start and length of a detour in nanoseconds"},
        {"5 5\n7 1", "t:2: expected detours in their order, apart from each other"},
        {"1 x", "t:1: expected start and length of a detour in nanoseconds"},
        {"1 2 3", "t:1: expected start and length of a detour in nanoseconds"}}) {
    const auto noise = Noise::parse(text, "t");
    ASSERT_FALSE(noise.ok()) << text;
    EXPECT_EQ(noise.error().message, message);
  }
}

}  // namespace
}  // namespace unisono::sim::events_test
