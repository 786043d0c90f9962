// SPDX-License-Identifier: BSD-3-Clause
// GOAL text: schedules that are written and read again take the same time; damaged files are
// refused.
#include "sim/goal/goal_file.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "machines.hpp"
#include "random_schedule.hpp"
#include "sim/export.hpp"
#include "sim/sweep.hpp"

namespace unisono::sim::goal_file_test {
namespace {

std::string error_of(std::string_view text) {
  const auto traces = parse_goal(text, "g");
  return traces.ok() ? "accepted" : traces.error().message;
}

// GOAL rounds work to nanoseconds, and has no start-up of an operation.
TEST(GoalFile, OfAScheduleTakesItsTime) {
  model::Machine machine = test_machine(MachineKind::gapless);
  for (model::PathParameters& path : machine.paths) path.start_up.clear();
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const ProgramSet programs = programs_of(random_set(5, 60, seed), machine);
    const auto traces = parse_goal(goal_text(programs), "g");
    ASSERT_TRUE(traces.ok()) << traces.error().message;
    const ProgramSet again = ProgramSet::compile_traces(*traces, machine);
    EXPECT_EQ(again.step_count(), programs.step_count());
    const SimulationResult expected = sweep(programs), read = sweep(again);
    EXPECT_EQ(read.messages, expected.messages);
    EXPECT_NEAR(to_ns(read.finish), to_ns(expected.finish),
                static_cast<double>(programs.step_count()));
  }
}

TEST(GoalFile, MatchesMessagesOfATagInTheirOrder) {
  const auto traces = parse_goal(
      "num_ranks 2 // comment\n\nrank 1 {\nrecv 4b from 0 tag 7\nrecv 8b from 0\n"
      "recv 2b from 0 tag 7 cpu 0 nic 0\n}\n"
      "rank 0 {\na: send 8b to 1\nb: calc 5 cpu 0\nb requires a\nsend 4b to 1 tag 7\n"
      "send 2b to 1 tag 7\n}\n",
      "g");
  ASSERT_TRUE(traces.ok()) << traces.error().message;
  const Trace& sender = traces->front();
  ASSERT_EQ(sender.size(), 4U);
  EXPECT_EQ(sender[0].slot, 1);  // without a tag
  EXPECT_EQ(sender[1].work, to_time(5));
  EXPECT_EQ(sender[2].slot, 0);
  EXPECT_EQ(sender[3].slot, 2);
}

TEST(GoalFile, RefusesWithLineAndExpectation) {
  EXPECT_EQ(error_of(""), "g:1: expected num_ranks");
  EXPECT_EQ(error_of("rank 0 {\n}"),
            "g:1: expected num_ranks with the number of ranks, 1 to 1048576");
  EXPECT_EQ(error_of("num_ranks 1\nrank 1 {"), "g:2: expected 'rank R {' with R from 0 to 0");
  EXPECT_EQ(error_of("num_ranks 2\nrank 0 {\n}\nrank 0 {\n}"), "g:4: expected rank 0 once");
  EXPECT_EQ(error_of("num_ranks 1\nrank 0 {\n"), "g:3: expected } at the end of the rank");
  EXPECT_EQ(error_of("num_ranks 2\nrank 0 {\n}"), "g:4: expected all 2 ranks, found 1");
  const auto in_rank = [](std::string_view line) {
    return error_of("num_ranks 2\nrank 1 {\n}\nrank 0 {\n" + std::string(line) + "\n}");
  };
  EXPECT_EQ(in_rank("calc"), "g:5: expected nanoseconds after calc");
  EXPECT_EQ(in_rank("send 8b from 1"), "g:5: expected 'send BYTESb to RANK'");
  EXPECT_EQ(in_rank("recv 8b from -1"), "g:5: expected a rank from 0 to 1, found '-1'");
  EXPECT_EQ(in_rank("send 8b to 2"), "g:5: expected a rank from 0 to 1, found '2'");
  EXPECT_EQ(in_rank("send 8b to 0"), "g:5: expected another rank than 0");
  EXPECT_EQ(in_rank("send 8b to 1"), "g:5: expected a reception of this send");
  EXPECT_EQ(in_rank("recv 8b from 1"), "g:5: expected a send to this reception");
  EXPECT_EQ(in_rank("calc 5 cpu 1"), "g:5: expected tag T, cpu 0 or nic 0, found 'cpu'");
  EXPECT_EQ(in_rank("a: calc 5\nb: calc 5\na requires b"),
            "g:7: expected operations in the order of their dependencies");
  EXPECT_EQ(in_rank("a: calc 5\na requires c"), "g:6: expected labels of operations above");
  EXPECT_EQ(in_rank("a: calc 5\na: calc 5"), "g:6: expected a label that is new, found 'a'");
  EXPECT_NE(error_of("num_ranks 2\nrank 0 {\nrecv 1b from 1\nsend 1b to 1\n}\n"
                     "rank 1 {\nrecv 1b from 0\nsend 1b to 0\n}")
                .find("expected ranks that end"),
            std::string::npos);
}

}  // namespace
}  // namespace unisono::sim::goal_file_test
