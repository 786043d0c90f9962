// SPDX-License-Identifier: BSD-3-Clause
// GOAL binary (goal_binary, goal_messages): it has the bytes that LogGOPSim expects, is read as
// GOAL text is, and damage is refused with its place.
#include "sim/goal/goal_binary.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "machines.hpp"
#include "random_schedule.hpp"
#include "sim/export.hpp"
#include "sim/goal/goal_file.hpp"
#include "sim/goal/goal_messages.hpp"

namespace unisono::sim::goal_binary_test {
namespace {

std::string error_of(std::string_view content) {
  const auto traces = parse_goal_binary(content, "g");
  return traces.ok() ? "accepted" : traces.error().message;
}

std::string bytes_of(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

// Rank 0 computes for 5 ns and sends 8 bytes with tag 7; rank 1 receives them. The bytes were put
// together by hand.
std::string two_ranks() {
  return bytes_of({0x7f, 0x10, 0, 0, 0, 0, 0,  0,  // 4223
                   2,    0,    0, 0, 0, 0, 38, 0,   0, 0, 0, 0, 0, 0, 132, 0, 0, 0, 0, 0, 0, 0, 132,
                   0,    0,    0, 0, 0, 0, 0,  183, 0, 0, 0, 0, 0, 0, 0,   2, 0, 0, 0, 1, 0, 0, 0,
                   0,    0,    0, 0, 0, 0, 0,  0,   3, 0, 0, 0, 0, 5, 0,   0, 0, 0, 0, 0, 0, 0, 0,
                   0,    0,    0, 0, 1, 0, 0,  0,   0, 0, 0, 0, 0, 0, 0,   0, 1, 0, 0, 0, 1, 0, 0,
                   0,    1,    1, 0, 0, 0, 8,  0,   0, 0, 0, 0, 0, 0, 7,   0, 0, 0, 0, 0, 0, 0, 0,
                   0,    1,    0, 0, 0, 0, 0,  0,   0, 1, 0, 0, 0, 1, 0,   0, 0, 1, 0, 0, 0, 1, 0,
                   0,    0,    0, 0, 0, 0, 0,  0,   0, 0, 2, 0, 0, 0, 0,   8, 0, 0, 0, 0, 0, 0, 0,
                   7,    0,    0, 0, 0, 0, 0,  0,   0, 0, 0, 0, 0, 0, 0,   0, 0, 0, 0, 0, 0, 0});
}

TEST(GoalBinary, IsReadByteByByte) {
  const auto traces = parse_goal_binary(two_ranks(), "g");
  ASSERT_TRUE(traces.ok()) << traces.error().message;
  ASSERT_EQ(traces->size(), 2U);
  const Trace sender = {{.kind = StepKind::work, .work = to_time(5)},
                        {.kind = StepKind::send, .peer = 1, .slot = 0, .bytes = 8}};
  const Trace receiver = {{.kind = StepKind::wait, .peer = 0, .slot = 0, .bytes = 8}};
  EXPECT_EQ(traces->front(), sender);
  EXPECT_EQ(traces->back(), receiver);
  EXPECT_TRUE(is_goal_binary(two_ranks()));
  EXPECT_FALSE(is_goal_binary("num_ranks 2"));
}

TEST(GoalBinary, IsWrittenAsItIsRead) {
  model::Machine machine = test_machine(MachineKind::gapless);
  const std::string text =
      "num_ranks 2\nrank 0 {\ncalc 5\nsend 8b to 1 tag 0\n}\nrank 1 {\nrecv 8b from 0 tag 0\n}\n";
  const auto traces = parse_goal(text, "g");
  ASSERT_TRUE(traces.ok()) << traces.error().message;
  std::string written = goal_binary(ProgramSet::compile_traces(*traces, machine));
  std::string expected = two_ranks();
  // Tags are the receivers' slots, and the work is that of the compiled program.
  for (std::string* const each : {&written, &expected}) {
    ASSERT_EQ(each->size(), 191U);
    EXPECT_EQ(parse_goal_binary(*each, "g").ok(), true);
    for (const std::size_t tag : {114U, 169U}) (*each)[tag] = 0;
  }
  EXPECT_EQ(written, expected);
}

TEST(GoalBinary, SaysTheSameAsText) {
  for (const MachineKind kind : {MachineKind::gapless, MachineKind::multicasting}) {
    const model::Machine machine = test_machine(kind);
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      const ProgramSet programs = programs_of(random_set(5, 60, seed), machine);
      const auto of_text = parse_goal(goal_text(programs), "g");
      const auto of_binary = parse_goal_binary(goal_binary(programs), "g");
      ASSERT_TRUE(of_text.ok()) << of_text.error().message;
      ASSERT_TRUE(of_binary.ok()) << of_binary.error().message;
      EXPECT_EQ(*of_binary, *of_text) << "seed " << seed;
    }
  }
}

TEST(GoalBinary, EveryPartOfAFileIsRefused) {
  const std::string whole = two_ranks();
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_TRUE(error_of(whole.substr(0, bytes)).starts_with("g: byte ")) << bytes;
  }
}

// One changed byte each, and the message.
TEST(GoalBinary, RefusesWithPlaceAndExpectation) {
  const auto changed = [](std::size_t place, int value) {
    std::string content = two_ranks();
    content[place] = static_cast<char>(value);
    return error_of(content);
  };
  EXPECT_EQ(changed(0, 0), "g: byte 0: expected the number 4223 of GOAL");
  EXPECT_EQ(changed(8, 0), "g: byte 8: expected 1 to 1048576 ranks, found 0");
  EXPECT_EQ(changed(14, 255),
            "g: byte 14: expected the part of rank 0 in the file, behind those before");
  EXPECT_EQ(changed(30, 38),
            "g: byte 30: expected the part of rank 1 in the file, behind those before");
  EXPECT_EQ(changed(46, 200), "g: byte 46: expected 200 operations in the part of rank 0");
  EXPECT_EQ(changed(54, 1), "g: byte 54: expected operation 0 as a root");
  EXPECT_EQ(changed(62, 9), "g: byte 62: expected 1 (send), 2 (recv) or 3 (calc), found 9");
  EXPECT_EQ(changed(102, 0), "g: byte 102: expected another rank than 0");
  EXPECT_EQ(changed(118, 1), "g: byte 118: expected processor 0 and NIC 0");
  EXPECT_EQ(changed(81, 9), "g: byte 81: expected dependents in the list");
  EXPECT_EQ(changed(136, 0), "g: byte 136: expected operations in the order of their dependencies");
  EXPECT_EQ(changed(97, 2), "g: byte 97: expected 1 dependencies, as others list");
  EXPECT_EQ(changed(169, 6), "g: byte 152: expected a send to this reception");
}

TEST(GoalMessages, AreMatchedInBothDirections) {
  const auto fail = [](std::int64_t place, std::string_view what) {
    return base::Error{base::Code::argument, std::to_string(place) + " " + std::string(what)};
  };
  GoalMessages lonely_send(2), lonely_reception(2), deadlock(2);
  lonely_send.add(0, {.kind = StepKind::send, .peer = 1, .place = 7});
  EXPECT_EQ(lonely_send.traces(fail).error().message, "7 expected a reception of this send");
  lonely_reception.add(0, {.kind = StepKind::wait, .peer = 1, .place = 8});
  EXPECT_EQ(lonely_reception.traces(fail).error().message, "8 expected a send to this reception");
  for (const int rank : {0, 1}) {
    deadlock.add(rank, {.kind = StepKind::wait, .peer = 1 - rank});
    deadlock.add(rank, {.kind = StepKind::send, .peer = 1 - rank});
  }
  EXPECT_EQ(deadlock.traces(fail).error().message,
            "0 expected ranks that end; some wait for each other");
}

}  // namespace
}  // namespace unisono::sim::goal_binary_test
