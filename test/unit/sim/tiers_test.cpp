// SPDX-License-Identifier: BSD-3-Clause
// The tiers without contention agree to the last bit: class collapse, the sweep step by step and
// the sweep rank by rank, on random schedules and on all rows of the table.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "machines.hpp"
#include "model/price.hpp"
#include "random_schedule.hpp"
#include "sim/arrivals.hpp"
#include "sim/collapse.hpp"
#include "sim/goal/goal_file.hpp"
#include "sim/program/number_table.hpp"
#include "sim/sweep.hpp"

namespace unisono::sim::tiers_test {
namespace {

constexpr MachineKind kKinds[] = {MachineKind::plain, MachineKind::gapless, MachineKind::staging,
                                  MachineKind::multicasting};

std::vector<Time> random_skew(int ranks, std::uint64_t seed) {
  base::Prng random(seed);
  std::vector<Time> skew;
  for (int rank = 0; rank < ranks; ++rank) {
    skew.push_back(static_cast<Time>(random.below(5'000'000)));
  }
  return skew;
}

bool needs_hosts(const algorithm::Algorithm& row) { return row.uses_hosts; }

template <typename Check>
void for_each_row(const std::vector<int>& rank_counts, const Check& check) {
  for (const algorithm::Algorithm& row : algorithm::table()) {
    if (needs_hosts(row)) continue;
    for (const int ranks : rank_counts) {
      const bool barrier = row.collective == schedule::Collective::barrier;
      const schedule::Shape shape{row.collective, ranks, 0, barrier ? 0 : 24};
      const auto parameters = algorithm::default_parameters(row, shape);
      if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
      SCOPED_TRACE(std::string(row.name) + " " + std::to_string(ranks));
      check(row, shape);
    }
  }
}

TEST(Tiers, AgreeOnRandomSchedules) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int ranks = 2 + static_cast<int>(seed % 9);
    const auto set = random_set(ranks, 100, seed);
    const ProgramSet programs = programs_of(set, test_machine(kKinds[seed % 4]));
    const auto skew = random_skew(ranks, seed);
    const SimulationResult by_rank = sweep_ranks(programs, skew);
    const SimulationResult by_class = collapse(programs, skew);
    EXPECT_EQ(by_rank.by_rank, by_class.by_rank);
    EXPECT_EQ(by_rank.finish, by_class.finish);
    EXPECT_EQ(by_rank.messages, by_class.messages);
    EXPECT_GT(by_rank.finish, 0);
  }
}

TEST(Tiers, AgreeOnAllRowsOfTheTable) {
  for (const MachineKind kind : kKinds) {
    const model::Machine machine = test_machine(kind);
    for_each_row({1, 2, 5, 16, 33}, [&](const auto& row, const auto& shape) {
      const ProgramSet programs = programs_of(set_of(row, shape), machine);
      const SimulationResult by_rank = sweep_ranks(programs, {});
      EXPECT_EQ(by_rank.by_rank, collapse(programs).by_rank);
      if (!programs.uniform()) return;
      EXPECT_EQ(by_rank, sweep_steps(programs, {}));
      EXPECT_EQ(by_rank.finish, collapse_alike(programs).finish);
    });
  }
}

void expect_classes_agree(std::string_view goal, std::size_t classes) {
  const auto traces = parse_goal(goal, "g");
  ASSERT_TRUE(traces.ok()) << traces.error().message;
  const ProgramSet programs = ProgramSet::compile_traces(*traces, test_machine());
  EXPECT_EQ(find_classes(programs).first_rank.size(), classes);
  const SimulationResult by_rank = sweep_ranks(programs, {});
  const SimulationResult by_class = collapse(programs);
  EXPECT_EQ(by_class.by_rank, by_rank.by_rank);
  EXPECT_EQ(by_class.messages, by_rank.messages);
}

// Ranks 1 and 2 differ by a step whose kind, cost and port all have the number 0.
TEST(Tiers, ClassesTellRanksApartByAFirstSend) {
  expect_classes_agree(
      "num_ranks 3\nrank 0 {\nsend 8b to 1\nrecv 8b from 1\nsend 8b to 2\n}\n"
      "rank 1 {\nsend 8b to 0\nrecv 8b from 0\n}\nrank 2 {\nrecv 8b from 0\n}\n",
      3);
}

// Each rank receives from one that is like it, and two of them also compute.
TEST(Tiers, ClassesTellPairsApartThatExchange) {
  expect_classes_agree(
      "num_ranks 4\nrank 0 {\nsend 8b to 1\nrecv 8b from 1\n}\n"
      "rank 1 {\nsend 8b to 0\nrecv 8b from 0\n}\n"
      "rank 2 {\nsend 8b to 3\ncalc 9000\nrecv 8b from 3\n}\n"
      "rank 3 {\nsend 8b to 2\ncalc 9000\nrecv 8b from 2\n}\n",
      2);
}

// Each step may round a picosecond.
double rounding_ns(const ProgramSet& programs) {
  return 1e-3 * static_cast<double>(programs.step_count());
}

TEST(Tiers, AgreeWithThePriceOfTheModel) {
  for (const MachineKind kind : kKinds) {
    const model::Machine machine = test_machine(kind);
    for_each_row({2, 5, 16, 33}, [&](const auto& row, const auto& shape) {
      const auto set = set_of(row, shape);
      const ProgramSet programs = programs_of(set, machine);
      EXPECT_NEAR(to_ns(sweep(programs).finish), model::price(set, machine, test_work()).ns,
                  rounding_ns(programs));
    });
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      const auto set = random_set(6, 80, seed);
      const ProgramSet programs = programs_of(set, machine);
      EXPECT_NEAR(to_ns(sweep(programs).finish), model::price(set, machine, test_work()).ns,
                  rounding_ns(programs))
          << "seed " << seed;
    }
  }
}

TEST(Tiers, TheSweepByStepsTakesSkew) {
  for (const char* name : {"dissemination", "pairwise", "kdissemination"}) {
    const auto* row = algorithm::find(schedule::Collective::barrier, name);
    for (const int ranks : {16, 64}) {
      const ProgramSet programs =
          programs_of(set_of(*row, {schedule::Collective::barrier, ranks, 0, 0}), test_machine());
      ASSERT_TRUE(programs.uniform()) << name;
      const auto skew = random_skew(ranks, 5);
      EXPECT_EQ(sweep_ranks(programs, skew), sweep_steps(programs, skew)) << name;
    }
  }
}

// The sweep by rank keeps the ranks that can go on in words of 16, in levels.
TEST(Tiers, AgreeWhereRanksFillSeveralLevelsOfWords) {
  using schedule::Collective;
  for (const auto& [collective, name] : {std::pair{Collective::barrier, "dissemination"},
                                         {Collective::barrier, "pairwise"},
                                         {Collective::allreduce, "bine"},
                                         {Collective::allreduce, "circulant"},
                                         {Collective::reduce, "fnomial"},
                                         {Collective::allreduce, "ring"}}) {
    const auto* row = algorithm::find(collective, name);
    ASSERT_NE(row, nullptr) << name;
    for (const int ranks : {1, 15, 16, 17, 255, 256, 257}) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(ranks));
      const schedule::Shape shape{collective, ranks, 0, collective == Collective::barrier ? 0 : 24};
      const auto parameters = algorithm::default_parameters(*row, shape);
      if (!algorithm::why_illegal(*row, shape, parameters).empty()) continue;
      const ProgramSet programs = programs_of(set_of(*row, shape), test_machine());
      const auto skew = random_skew(ranks, 7);
      const SimulationResult by_rank = sweep_ranks(programs, skew);
      EXPECT_EQ(by_rank.by_rank, collapse(programs, skew).by_rank);
      if (programs.uniform()) {
        EXPECT_EQ(by_rank, sweep_steps(programs, skew));
      }
    }
  }
}

// Slots of one number and of 4096 neighbouring ranks lie together.
TEST(Tiers, AgreeWhereSlotsFillSeveralChunks) {
  for (const auto& [name, ranks] : {std::pair{"dissemination", 9001}, {"pairwise", 16384}}) {
    const auto* row = algorithm::find(schedule::Collective::barrier, name);
    const ProgramSet programs =
        programs_of(set_of(*row, {schedule::Collective::barrier, ranks, 0, 0}), test_machine());
    ASSERT_TRUE(have_like_slots(programs));
    const auto skew = random_skew(ranks, 3);
    EXPECT_EQ(sweep_ranks(programs, skew), sweep_steps(programs, skew)) << name;
  }
}

TEST(Arrivals, OfLaterSlotsTakeThePlaceOfThoseThatWereTaken) {
  const auto* row = algorithm::find(schedule::Collective::barrier, "dissemination");
  const ProgramSet programs =
      programs_of(set_of(*row, {schedule::Collective::barrier, 8, 0, 0}), test_machine());
  ArrivalsBySlot arrivals(programs);
  for (std::int32_t slot = 0; slot < 3; ++slot) {
    EXPECT_EQ(arrivals.take(0, slot), kUnfilled);
    for (int rank = 0; rank < 8; ++rank) {
      EXPECT_EQ(arrivals.fill(rank, slot, 10 * slot + rank), rank == 0) << "who waits for it";
    }
    EXPECT_EQ(arrivals.in_use(), 1U);
    for (int rank = 0; rank < 8; ++rank) EXPECT_EQ(arrivals.take(rank, slot), 10 * slot + rank);
    EXPECT_EQ(arrivals.in_use(), 0U);
  }
}

// Rows whose ranks are alike are one program in one of the codings.
TEST(Programs, OfCirculantsAndButterfliesAreOne) {
  for (const auto& [collective, name, coding] :
       {std::tuple{schedule::Collective::barrier, "dissemination", Coding::shift},
        {schedule::Collective::barrier, "pairwise", Coding::exclusive_or},
        {schedule::Collective::allreduce, "pairwise", Coding::exclusive_or},
        {schedule::Collective::barrier, "kdissemination", Coding::shift}}) {
    const auto* row = algorithm::find(collective, name);
    const bool barrier = collective == schedule::Collective::barrier;
    const ProgramSet programs =
        programs_of(set_of(*row, {collective, 64, 0, barrier ? 0 : 8}), test_machine());
    EXPECT_TRUE(programs.uniform()) << name;
    EXPECT_EQ(programs.coding(), coding) << name;
    EXPECT_EQ(find_classes(programs).first_rank.size(), 1U) << name;
  }
}

TEST(Classes, OfABinomialTreeAreFew) {
  const auto* row = algorithm::find(schedule::Collective::reduce, "fnomial");
  const schedule::Shape shape{schedule::Collective::reduce, 1024, 0, 1};
  std::vector<schedule::Schedule> set;
  for (int rank = 0; rank < 1024; ++rank) {
    set.push_back(*algorithm::build(*row, shape, algorithm::Parameters{{2, 0}}, rank));
  }
  const ProgramSet programs = programs_of(set, test_machine());
  const RankClasses classes = find_classes(programs);
  EXPECT_EQ(classes.first_rank.size(), 11U) << "a class for each height";
  EXPECT_EQ(collapse(programs).by_rank, sweep_ranks(programs, {}).by_rank);
}

// By hand: one message, then a reduction.
TEST(Sweep, AddsUpWhatAMessageCosts) {
  const schedule::Shape shape{schedule::Collective::reduce, 2, 0, 10};
  schedule::Builder root(shape, 0), sender(shape, 1);
  const auto slot = root.slot(1, 10);
  const auto arrived = root.wait(slot);
  root.reduce(schedule::output(0, 10), schedule::input(0, 10), root.of(slot), {arrived});
  sender.send(0, slot, schedule::input(0, 10));
  const ProgramSet programs =
      programs_of({std::move(root).take(), std::move(sender).take()}, test_machine());
  const SimulationResult outcome = sweep(programs);
  // C, o + O m, L + G m, r(80 bytes), c(80 bytes); float64
  const double reduction = 70 + (80.0 - 8) / (800 - 8) * (900 - 70);
  const double sent = 41 + 310 + 0.37 * 80;
  EXPECT_NEAR(to_ns(outcome.by_rank[1]), sent, 0.01);
  EXPECT_NEAR(to_ns(outcome.by_rank[0]), sent + 1700 + 1.3 * 80 + 120 + 0.8 * 70 + reduction, 0.01);
  EXPECT_EQ(outcome.messages, 1);
  EXPECT_EQ(outcome.steps, 3);
}

// The sends and waits of a schedule, and those of its program, in their order.
using Messages = std::vector<std::tuple<StepKind, int, std::int32_t>>;

Messages messages_of(const schedule::Schedule& schedule) {
  Messages messages;
  for (const schedule::Op& op : schedule.ops) {
    if (op.kind == schedule::OpKind::wait) {
      const int source = schedule.slots[base::index(op.slot)].source;
      messages.emplace_back(StepKind::wait, source, op.slot);
    }
    for (const schedule::Target& target : schedule.targets_of(op)) {
      messages.emplace_back(StepKind::send, target.peer, target.slot);
    }
  }
  return messages;
}

Messages messages_of(const ProgramSet& programs, int rank) {
  Messages messages;
  for (const Step& step : programs.steps(programs.program(rank))) {
    if (step.kind == StepKind::work) continue;
    const StepKind kind = step.kind == StepKind::follow ? StepKind::send : step.kind;
    messages.emplace_back(kind, programs.peer(rank, step), step.slot);
  }
  return messages;
}

TEST(Programs, HaveTheMessagesOfTheirSchedulesInAllFragments) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto set = random_set(7, 300, seed);
    const ProgramSet programs = programs_of(set, test_machine(kKinds[seed % 4]));
    std::int64_t steps = 0;
    for (int rank = 0; rank < programs.ranks(); ++rank) {
      EXPECT_EQ(messages_of(programs, rank), messages_of(set[base::index(rank)]))
          << "seed " << seed << " rank " << rank;
      steps += programs.program(rank).count;
    }
    EXPECT_EQ(steps, programs.step_count());
  }
}

// Each rank of a grid has a program of its own. In a dimension, ranks of one digit do the same.
TEST(Programs, OfAGridShareTheFragmentsOfEachDimension) {
  const auto* row = algorithm::find(schedule::Collective::allreduce, "recursive-multiplying");
  for (const int ranks : {256, 1024, 1025}) {
    const auto set = set_of(*row, {schedule::Collective::allreduce, ranks, 0, 1});
    const ProgramSet programs = programs_of(set, test_machine());
    // Three sends, waits and reductions for each of 4 digits.
    const std::size_t dimensions = ranks == 256 ? 4 : 5;
    if (ranks != 1025) {
      EXPECT_EQ(programs.distinct(), base::index(ranks));
      EXPECT_EQ(programs.stored_steps(), dimensions * 4 * 9);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      ASSERT_EQ(messages_of(programs, rank), messages_of(set[base::index(rank)])) << rank;
    }
    EXPECT_EQ(collapse(programs).by_rank, sweep_ranks(programs, {}).by_rank);
  }
}

// Those that have the same hash, too, and more of them than the table begins with.
TEST(NumberTable, FindsTheNumbersOfEqualThings) {
  for (const std::uint64_t hashes : {1, 3, 1000}) {
    NumberTable table;
    std::vector<std::uint64_t> things;
    const auto number_of = [&](std::uint64_t thing) {
      return table.find(
          thing % hashes, [&](std::uint32_t known) { return things[known] == thing; },
          [&] {
            things.push_back(thing);
            return static_cast<std::uint32_t>(things.size() - 1);
          });
    };
    for (int round = 0; round < 2; ++round) {
      for (std::uint32_t i = 0; i < 500; ++i) EXPECT_EQ(number_of(7 * i), i);
    }
    EXPECT_EQ(things.size(), 500U);
  }
}

TEST(Programs, HandOnTheErrorOfABuild) {
  const auto programs = ProgramSet::compile(
      4,
      [](int) {
        return base::Result<schedule::Schedule>(base::Error{base::Code::argument, "no"});
      },
      test_machine(), test_work());
  ASSERT_FALSE(programs.ok());
  EXPECT_EQ(programs.error().message, "no");
}

}  // namespace
}  // namespace unisono::sim::tiers_test
