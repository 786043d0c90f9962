// SPDX-License-Identifier: BSD-3-Clause
// The text form: round trips in both directions, and errors with their place.
#include "schedule/text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "harness/unequal_blocks.hpp"
#include "schedule/builder.hpp"

namespace unisono::schedule::text_test {
namespace {

// One of everything.
constexpr std::string_view kCanonical =
    "schedule reduce ranks 4 rank 2 count 8 root 2 ordered exact by_one\n"
    "scratch 8\n"
    "slot 0 from 0 count 8\n"
    "slot 1 from 3 count 0\n"
    "op 0 wait slot 0\n"
    "op 1 reduce scratch[0:8] = slot 0[0:8] . input[0:8] after 0\n"
    "op 2 copy output[4:8] = scratch[4:8] after 1\n"
    "op 3 send scratch[0:4] to 3 slot 0 after 1 2\n"
    "op 4 multicast input[0:0] to 0 slot 1, 1 slot 0\n"
    "op 5 multicast input[0:0]\n"
    "op 6 sum output[0:4] = input[0:4] . slot 0[4:8] . scratch[0:4] after 0 3\n"
    "op 7 sum output[0:4] = output[0:4] after 6\n";

std::vector<Schedule> parsed(std::string_view text) {
  auto set = parse(text);
  if (!set.ok()) {
    ADD_FAILURE() << set.error().message;
    return {};
  }
  return std::move(set).value();
}

std::string error_of(std::string_view text) {
  const auto set = parse(text);
  if (set.ok()) return "no error";
  EXPECT_EQ(set.error().code, base::Code::argument);
  return set.error().message;
}

// The canonical text with one line replaced.
std::string error_with(std::string_view from, std::string_view to) {
  std::string text(kCanonical);
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  if (place == std::string::npos) return "no such line";
  return error_of(text.replace(place, from.size(), to));
}

TEST(Text, PrintsWhatWasParsed) { EXPECT_EQ(print(parsed(kCanonical)), kCanonical); }

TEST(Text, ParsesIntoTheSameScheduleThatTheBuilderMakes) {
  const Shape shape = {.collective = Collective::reduce,
                       .ranks = 4,
                       .root = 2,
                       .count = 8,
                       .ordered = true,
                       .exact = true,
                       .by_one = true};
  Builder b(shape, 2);
  const SlotId vector = b.slot(0, 8);
  b.slot(3, 0);
  const Range partial = b.scratch(8);
  const OpId arrived = b.wait(vector);
  const OpId reduced = b.reduce(partial, b.of(vector), input(0, 8), {arrived});
  const OpId copied = b.copy(output(4, 4), scratch(4, 4), {reduced});
  const OpId sent = b.send(3, 0, scratch(0, 4), {reduced, copied});
  const Target targets[] = {{0, 1}, {1, 0}};
  b.multicast(targets, input(0, 0));
  b.multicast({}, input(0, 0));
  const Range operands[] = {input(0, 4), slot_range(vector, 4, 4), scratch(0, 4)};
  const OpId summed = b.sum(output(0, 4), operands, {arrived, sent});
  const Range again[] = {output(0, 4)};
  b.sum(output(0, 4), again, {summed});
  const Schedule schedule = std::move(b).take();
  EXPECT_EQ(print(schedule), kCanonical);
  const auto set = parsed(kCanonical);
  ASSERT_EQ(set.size(), 1u);
  EXPECT_TRUE(set.front() == schedule);
}

TEST(Text, ASetIsItsSchedulesWithBlankLinesBetween) {
  const std::string text =
      "schedule barrier ranks 2 rank 0 count 0\n"
      "\n"
      "schedule barrier ranks 2 rank 1 count 0\n";
  EXPECT_EQ(parsed(text).size(), 2u);
  EXPECT_EQ(print(parsed(text)), text);
  EXPECT_EQ(print(parsed("")), "");
}

TEST(Text, SpacesCommentsAndMissingNewlinesDoNotCount) {
  const auto set = parsed(
      "# a comment\r\n"
      "\n"
      "  schedule   allreduce ranks 1\trank 0 count 3   # another\n"
      "op 0 copy output [ 0 : 3 ]=input[0:3]");
  EXPECT_EQ(print(set),
            "schedule allreduce ranks 1 rank 0 count 3\n"
            "op 0 copy output[0:3] = input[0:3]\n");
}

Schedule random_schedule(std::mt19937& random) {
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
  };
  const auto small = [&](std::int64_t bound) { return static_cast<std::int32_t>(below(bound)); };
  Shape shape;
  shape.collective = static_cast<Collective>(below(kCollectiveCount));
  shape.ranks = 1 + small(100);
  shape.root = is_rooted(shape.collective) ? small(shape.ranks) : 0;
  if (has_blocks(shape.collective) && below(2) == 0) {
    shape.blocks = test::unequal_blocks(shape.collective, shape.ranks, random());
  } else {
    shape.count = below(kMaxTextCount);
  }
  shape.ordered = below(2) == 0;
  shape.exact = below(2) == 0;
  shape.by_one = below(2) == 0;
  if (below(2) == 0) {
    std::vector<int> labels(static_cast<std::size_t>(shape.ranks));
    for (int& label : labels) label = small(5);
    shape.hosts = topology::HostMap::of_labels(labels);
  }
  Builder b(shape, small(shape.ranks));
  const auto range = [&]() -> Range {
    const Range any = {static_cast<Memory>(below(3)), -1, below(1 << 20), below(1 << 20)};
    return below(3) == 0 ? slot_range(small(9), any.offset, any.count) : any;
  };
  b.scratch(below(3) * below(1 << 30));
  for (std::int64_t i = below(4); i > 0; --i) b.slot(small(100), below(1 << 30));
  for (OpId id = 0; id < 12; ++id) {
    switch (below(6)) {
      case 0:
        b.send(small(100), small(100), range());
        break;
      case 1: {
        std::vector<Target> targets(static_cast<std::size_t>(below(4)));
        for (Target& target : targets) target = {small(100), small(100)};
        b.multicast(targets, range());
        break;
      }
      case 2:
        b.wait(small(100));
        break;
      case 3:
        b.reduce(range(), range(), range());
        break;
      case 4: {
        std::vector<Range> operands(static_cast<std::size_t>(1 + below(4)));
        for (Range& operand : operands) operand = range();
        b.sum(range(), operands);
        break;
      }
      default:
        b.copy(range(), range());
        break;
    }
    for (std::int64_t i = below(3); i > 0; --i) b.also_after(small(20));
  }
  return std::move(b).take();
}

TEST(Text, RandomSchedulesSurviveTheRoundTrip) {
  std::mt19937 random(7);
  for (unsigned i = 0; i < 500; ++i) {
    std::vector<Schedule> set;
    for (unsigned n = 0; n <= i % 3; ++n) set.push_back(random_schedule(random));
    const std::string text = print(set);
    const auto again = parsed(text);
    ASSERT_TRUE(again == set) << text;
    ASSERT_EQ(print(again), text);
  }
}

TEST(Text, ErrorsNameLineAndColumn) {
  EXPECT_EQ(error_of("op 0 wait slot 0"), "line 1, column 1: expected 'schedule', found 'op'");
  EXPECT_EQ(error_of("\n  schedule dance"),
            "line 2, column 12: expected the name of a collective, found 'dance'");
  EXPECT_EQ(error_of("schedule barrier ranks"),
            "line 1, column 23: expected a number (the number of ranks), found the end of the "
            "line");
  EXPECT_EQ(error_of("schedule barrier ranks4 rank 0 count 0"),
            "line 1, column 18: expected 'ranks', found 'ranks4'");
  EXPECT_EQ(error_of("schedule broadcast ranks 2 rank 0 count 0 ordered"),
            "line 1, column 43: expected 'root', found 'ordered'");
  EXPECT_EQ(error_of("schedule barrier ranks 2 rank 0 count 0 root 0"),
            "line 1, column 41: expected the end of the line, found 'root'");
  EXPECT_EQ(error_with("op 0 wait slot 0", "op 0 wait slit 0"),
            "line 5, column 11: expected 'slot', found 'slit'");
  EXPECT_EQ(error_with("op 0 wait slot 0", "op 0 sleep"),
            "line 5, column 6: expected 'send', 'multicast', 'wait', 'reduce', 'copy' or "
            "'sum', found "
            "'sleep'");
  EXPECT_EQ(error_with("op 1 reduce", "op 2 reduce"), "line 6, column 4: expected '1', found '2'");
  EXPECT_EQ(error_with("slot 1 from", "slot 0 from"), "line 4, column 6: expected '1', found '0'");
  EXPECT_EQ(error_with(". input[0:8]", "+ input[0:8]"),
            "line 6, column 40: expected '.', found '+'");
  EXPECT_EQ(error_with("= scratch[4:8]", "= memory[4:8]"),
            "line 7, column 25: expected 'input', 'output', 'scratch' or 'slot', found 'memory'");
  EXPECT_EQ(error_with("scratch[4:8] after", "scratch[8:4] after"),
            "line 7, column 36: the range ends at 4, before it begins");
  EXPECT_EQ(error_with("to 3 slot 0 after", "to 3 slot 0, 1 slot 0 after"),
            "line 8, column 35: expected the end of the line, found ','");
  EXPECT_EQ(error_with("send scratch[0:4] to 3 slot 0", "send scratch[0:4]"),
            "line 8, column 24: expected 'to', found 'after'");
  EXPECT_EQ(error_with("after 1 2", "after"),
            "line 8, column 41: expected a number (an op), found the end of the line");
  EXPECT_EQ(error_with("op 5 multicast", "jump"),
            "line 10, column 1: expected 'schedule', 'scratch', 'slot' or 'op', found 'jump'");
}

TEST(Text, BlocksStandInPlaceOfTheCount) {
  for (const std::string_view text : {
           "schedule gather ranks 3 rank 0 blocks 3 0 2 root 1\n",
           "schedule reduce_scatter ranks 2 rank 1 blocks 0 0 ordered\n",
           "schedule alltoall ranks 2 rank 0 blocks 1 2, 3 4\n",
           "schedule many_to_many ranks 3 rank 0 blocks 3 0 2\n",
           "schedule many_to_many ranks 3 rank 0 blocks 3 0 2 receivers 0 2\n",
           "schedule many_to_many ranks 3 rank 0 blocks 3 0 2 receivers\n",
       }) {
    EXPECT_EQ(print(parsed(text)), text);
  }
  const auto set = parsed("schedule alltoall ranks 2 rank 0 blocks 1 2, 3 4");
  EXPECT_EQ(set.front().shape.blocks, *Blocks::of_pairs(2, {1, 2, 3, 4}));
  EXPECT_EQ(set.front().shape.count, 0);
  // Listing all ranks equals no list of receivers.
  EXPECT_EQ(print(parsed("schedule many_to_many ranks 2 rank 0 blocks 3 0 receivers 0 1")),
            "schedule many_to_many ranks 2 rank 0 blocks 3 0\n");
}

TEST(Text, HostsEndTheHead) {
  for (const std::string_view text : {
           "schedule barrier ranks 3 rank 0 count 0 hosts 0 0 1\n",
           "schedule reduce ranks 3 rank 1 count 2 root 1 ordered hosts 0 1 0\n",
       }) {
    EXPECT_EQ(print(parsed(text)), text);
  }
  const std::string head = "schedule barrier ranks 3 rank 0 count 0 hosts";
  EXPECT_EQ(error_of(head + " 0 2 1"), "line 1, column 49: the next new host is 1");
  EXPECT_EQ(error_of(head + " 0 0 0"), "line 1, column 52: ranks of one host: leave 'hosts' out");
  EXPECT_EQ(error_of(head + " 0 1"),
            "line 1, column 50: expected a number (a host), found the end of the line");
}

TEST(Text, BlocksThatDoNotFitAreErrors) {
  EXPECT_EQ(error_of("schedule scan ranks 2 rank 0 blocks 1 2"),
            "line 1, column 30: expected 'count', found 'blocks'");
  EXPECT_EQ(error_of("schedule gather ranks 3 rank 0 blocks 1 2 root 0"),
            "line 1, column 43: expected a number (the size of a block), found 'root'");
  EXPECT_EQ(error_of("schedule gather ranks 2 rank 0 blocks 1 2 3 root 0"),
            "line 1, column 43: expected 'root', found '3'");
  EXPECT_EQ(error_of("schedule alltoall ranks 2 rank 0 blocks 1 2 3 4"),
            "line 1, column 45: expected ',', found '3'");
  EXPECT_EQ(error_of("schedule alltoall ranks 1048576 rank 0 blocks 1"),
            "line 1, column 48: expected a number (the size of a block), found the end of the "
            "line");
  EXPECT_EQ(error_of("schedule allgather ranks 1 rank 0 blocks 1099511627777"),
            "line 1, column 42: the size of a block is at most 1099511627776");
  EXPECT_EQ(error_of("schedule allgather ranks 2 rank 0 blocks 1 2 receivers 0"),
            "line 1, column 46: expected the end of the line, found 'receivers'");
  for (const std::string_view receivers : {"1 0", "1 1", "0 2"}) {
    const std::string head = "schedule many_to_many ranks 2 rank 0 blocks 1 2 receivers ";
    EXPECT_EQ(error_of(head + std::string(receivers)),
              "line 1, column 61: receivers are ranks in ascending order");
  }
}

TEST(Text, LinesHaveTheirOrder) {
  EXPECT_EQ(error_with("op 1 reduce", "slot 2 from 0 count 1\nop 1 reduce"),
            "line 6, column 1: 'slot' stands above the ops");
  EXPECT_EQ(error_with("scratch 8\n", "scratch 8\nscratch 8\n"),
            "line 3, column 1: 'scratch' stands once, right below 'schedule'");
  EXPECT_EQ(error_with("op 0 wait", "scratch 1\nop 0 wait"),
            "line 5, column 1: 'scratch' stands once, right below 'schedule'");
}

TEST(Text, NumbersHaveTheirLimits) {
  EXPECT_EQ(error_of("schedule barrier ranks 1048577 rank 0 count 0"),
            "line 1, column 24: the number of ranks is at most 1048576");
  EXPECT_EQ(error_of("schedule barrier ranks 99999999999999999999999 rank 0 count 0"),
            "line 1, column 24: the number of ranks is at most 1048576");
  EXPECT_EQ(error_of("schedule barrier ranks 2 rank 0 count 1099511627777"),
            "line 1, column 39: a count is at most 1099511627776");
  EXPECT_EQ(error_with("scratch 8", "scratch 9223372036854775807"),
            "line 2, column 9: the scratch is at most 1152921504606846976");
  EXPECT_EQ(error_with("scratch[4:8] after", "scratch[4:1152921504606846977] after"),
            "line 7, column 35: an element is at most 1152921504606846976");
  EXPECT_EQ(error_with("wait slot 0", "wait slot -1"),
            "line 5, column 16: expected a number (a slot), found '-'");
  EXPECT_EQ(error_with("wait slot 0", "wait slot 00"), "line 5, column 16: a number begins with 0");
  EXPECT_EQ(error_with("wait slot 0", "wait slot 0x1"),
            "line 5, column 16: expected a number (a slot), found '0x1'");
}

TEST(Text, ForeignBytesAreShownSafely) {
  EXPECT_EQ(error_of(std::string_view("\0schedule", 9)),
            "line 1, column 1: expected 'schedule', found byte 0x00");
  EXPECT_EQ(error_of("schedule \xff"),
            "line 1, column 10: expected the name of a collective, found byte 0xff");
  EXPECT_EQ(error_of(std::string(1000, 'a')),
            "line 1, column 1: expected 'schedule', found 'aaaaaaaaaaaaaaaaaaaaaaaa...'");
}

TEST(Text, GraphvizDrawsEveryOpPredecessorAndMessage) {
  const auto set = parsed(
      "schedule broadcast ranks 2 rank 0 count 4 root 0\n"
      "op 0 send input[0:4] to 1 slot 0\n"
      "schedule broadcast ranks 2 rank 1 count 4 root 0\n"
      "slot 0 from 0 count 4\n"
      "op 0 wait slot 0\n"
      "op 1 copy output[0:4] = slot 0[0:4] after 0\n");
  const std::string picture = graphviz(set);
  for (const std::string_view part :
       {"digraph schedule {", "subgraph cluster_0", "subgraph cluster_1",
        "r0_0 [label=\"0: send input[0:4] to 1 slot 0\"", "r1_0 -> r1_1;",
        "r0_0 -> r1_0 [style=bold"}) {
    EXPECT_NE(picture.find(part), std::string::npos) << part << " in\n" << picture;
  }
  EXPECT_EQ(std::ranges::count(picture, '{'), std::ranges::count(picture, '}'));
}

TEST(Text, GraphvizBearsWrongSets) {
  const auto set = parsed(
      "schedule barrier ranks 2 rank 0 count 0\n"
      "op 0 send input[0:0] to 7 slot 9 after 5\n"
      "schedule barrier ranks 2 rank 1 count 0\n");
  const std::string picture = graphviz(set);
  EXPECT_NE(picture.find("nothing to do"), std::string::npos);
  EXPECT_EQ(picture.find("->"), std::string::npos) << picture;
}

}  // namespace
}  // namespace unisono::schedule::text_test
