// SPDX-License-Identifier: BSD-3-Clause
// UNISONO_ALGORITHM: the meaning of its rules, the errors of refused ones with their positions, and
// the rule for each call.
#include "select/override.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "select/select.hpp"

namespace unisono::select::override_test {
namespace {

using algorithm::Algorithm;
using schedule::Collective;
using schedule::Shape;

const Algorithm* row(Collective collective, std::string_view name) {
  return algorithm::find(collective, name);
}

Overrides rules_of(std::string_view text) {
  auto parsed = parse_overrides(text);
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return parsed.ok() ? *parsed : Overrides{};
}

std::string error_of(std::string_view text) {
  const auto parsed = parse_overrides(text);
  EXPECT_FALSE(parsed.ok()) << text;
  if (parsed.ok()) return {};
  EXPECT_EQ(parsed.error().code, base::Code::argument);
  return parsed.error().message;
}

TEST(ParseOverrides, ReadsEveryPartOfARule) {
  const Overrides read =
      rules_of("allreduce:reduce-broadcast(3)@1K-1M;ring@64K-inf|barrier:^pairwise");
  const std::vector<OverrideRule> expected = {
      {.algorithm = row(Collective::allreduce, "reduce-broadcast"),
       .given = 1,
       .parameters = {{3}},
       .low = 1024,
       .high = 1 << 20},
      {.algorithm = row(Collective::allreduce, "ring"), .low = 64 * 1024},
      {.algorithm = row(Collective::barrier, "pairwise"), .never = true}};
  EXPECT_EQ(read.rules, expected);
  EXPECT_FALSE(read.rules[1].everywhere());
  EXPECT_TRUE(read.rules[2].everywhere());
}

TEST(ParseOverrides, BlanksMayStandBetweenAnySigns) {
  EXPECT_EQ(
      rules_of(" allreduce : reduce-broadcast ( 3 ) @ 1K - 1M ;\n\tring|barrier : ^ pairwise "),
      rules_of("allreduce:reduce-broadcast(3)@1024-1048576;ring|barrier:^pairwise"));
}

TEST(ParseOverrides, ACollectiveMayComeAgain) {
  EXPECT_EQ(rules_of("allreduce:ring@1M-inf|allreduce:pairwise"),
            rules_of("allreduce:ring@1M-inf;pairwise"));
}

TEST(ParseOverrides, WhatIsPrintedIsReadBack) {
  for (const std::string text :
       {"allreduce:reduce-broadcast(3)@1K-1M;ring@64K-inf|barrier:^pairwise", "reduce:fnomial@0-1",
        "allgather:^ring@1000-2000;direct", "barrier:gather-release(7)|broadcast:flat"}) {
    EXPECT_EQ(print(rules_of(text)), text);
  }
  EXPECT_EQ(print({}), "");
}

struct Wrong {
  std::string text, message;
};

TEST(ParseOverrides, ErrorsSayWhereAndWhat) {
  const std::vector<Wrong> all = {
      {" ", "at character 2: expected a collective, found the end"},
      {"allreduce", "at character 10: expected ':' after the collective, found the end"},
      {"allreduce ring", "at character 11: expected ':' after the collective, found 'r'"},
      {"allreduce:", "at character 11: expected an algorithm, found the end"},
      {"allreduce:ring;", "at character 16: expected an algorithm, found the end"},
      {"allreduce:;ring", "at character 11: expected an algorithm, found ';'"},
      {"allreduce:ring|", "at character 16: expected a collective, found the end"},
      {"allreduce:ring pairwise", "at character 16: expected '@', ';', '|' or the end, found 'p'"},
      {"allreduce:ring\x01", "at character 15: expected '@', ';', '|' or the end, found byte 0x1"},
      {"barrier:dissemination|alreduce:ring",
       "at character 23: no collective is named 'alreduce'; did you mean allreduce?"},
      {"allreduce:ring(2)", "at character 16: ring has no parameters"},
      {"broadcast:fnomial(2,3)", "at character 21: fnomial has only 1 parameter"},
      {"broadcast:fnomial(1)", "at character 19: degree is '1'; choose a whole number, 2 or more"},
      {"broadcast:fnomial(-4)",
       "at character 19: degree is '-4'; choose a whole number, 2 or more"},
      {"broadcast:fnomial(4x)",
       "at character 19: degree is '4x'; choose a whole number, 2 or more"},
      {"broadcast:fnomial(99999999999)",
       "at character 19: degree is '99999999999'; choose a whole number, 2 or more"},
      {"broadcast:fnomial()", "at character 19: expected a parameter, found ')'"},
      {"broadcast:fnomial(4", "at character 20: expected ',' or ')', found the end"},
      {"broadcast:^fnomial(4)", "at character 19: ^ excludes an algorithm with any parameters"},
      {"allreduce:ring@", "at character 16: expected a size in bytes, e.g. 4K, found the end"},
      {"allreduce:ring@4Q-8K",
       "at character 16: '4Q' is no size: write bytes, or K, M, G, T (1024 each)"},
      {"allreduce:ring@inf-8K",
       "at character 16: 'inf' is no size: write bytes, or K, M, G, T (1024 each)"},
      {"allreduce:ring@4K",
       "at character 18: expected '-' and the end of the range, which may be inf, found the end"},
      {"allreduce:ring@4K-infinite",
       "at character 19: 'infinite' is no size: write bytes, or K, M, G, T (1024 each)"},
      {"allreduce:ring@8K-4K",
       "at character 16: no size is in the range 8K-4K: its end does not belong to it"},
      {"allreduce:ring@4K-4096",
       "at character 16: no size is in the range 4K-4K: its end does not belong to it"},
      {"barrier:dissemination@0-1",
       "at character 23: a barrier carries no bytes: leave the range out"}};
  for (const Wrong& wrong : all) EXPECT_EQ(error_of(wrong.text), wrong.message) << wrong.text;
}

// The nearest stands first; which the others are is the table's business.
TEST(ParseOverrides, UnknownAlgorithmsAreAnsweredWithTheNearest) {
  EXPECT_EQ(error_of("allreduce:pairwise;rinng@0-1K")
                .find("at character 20: allreduce has no algorithm 'rinng'; choose one of: ring, "),
            0U);
  EXPECT_EQ(error_of("song:ring")
                .find("at character 1: no collective is named 'song'; choose one "
                      "of: barrier, broadcast, "),
            0U);
}

TEST(ParseOverrides, SomethingHasToBeLeft) {
  std::string all = "broadcast:";
  std::string some = all;
  for (const Algorithm& each : algorithm::table()) {
    if (each.collective != Collective::broadcast) continue;
    all += (all.back() == ':' ? "^" : ";^") + std::string(each.name);
    some += (some.back() == ':' ? "^" : ";^") + std::string(each.name) + "@0-1M";
  }
  EXPECT_EQ(error_of(all), "it leaves no algorithm for broadcast");
  EXPECT_FALSE(rules_of(some).rules.empty());
}

TEST(ParseOverrides, RulesAreLimited) {
  std::string text = "allreduce:ring";
  for (int i = 1; i < 256; ++i) text += ";ring";
  EXPECT_EQ(rules_of(text).rules.size(), 256U);
  EXPECT_NE(error_of(text + ";ring").find("there can be 256 rules"), std::string::npos);
}

TEST(ParseOverrides, TheSettingIsNamedInTheError) {
  const auto settings = base::Settings::from({{"UNISONO_ALGORITHM", "allreduce:ring@x"}});
  ASSERT_TRUE(settings.ok());
  const auto read = overrides_of(*settings);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message,
            "UNISONO_ALGORITHM=\"allreduce:ring@x\" is not valid: at character 16: 'x' is no size: "
            "write bytes, or K, M, G, T (1024 each)");
  EXPECT_EQ(*overrides_of(base::Settings()), Overrides{});
}

constexpr Circumstances kBytes{.element_bytes = 1, .multicast = true};

Choice choice(std::string_view text, const Shape& shape) {
  return choose(shape, kBytes, rules_of(text));
}

std::string name_of(const Choice& choice) {
  return algorithm::describe(*choice.algorithm, choice.parameters);
}

TEST(Overrides, RangesAreHalfOpen) {
  const std::string text = "allreduce:reduce-broadcast(2)@4K-8K";
  for (const auto& [count, applies] : std::vector<std::pair<std::int64_t, bool>>{
           {0, false}, {4095, false}, {4096, true}, {8191, true}, {8192, false}}) {
    const Choice made = choice(text, {Collective::allreduce, 4, 0, count, false});
    EXPECT_EQ(name_of(made) == "reduce-broadcast(2)", applies) << count;
    EXPECT_EQ(made.origin == Origin::override_, applies) << count;
  }
  // Elements have more than one byte.
  const Shape shape{Collective::allreduce, 4, 0, 512, false};
  const Circumstances wide{.element_bytes = 8};
  EXPECT_EQ(name_of(choose(shape, wide, rules_of(text))), "reduce-broadcast(2)");
}

TEST(Overrides, TheFirstThatMatchesWins) {
  const std::string text = "allreduce:ring@1K-inf;reduce-scatter-allgather@2K-inf;reduce-broadcast";
  const Shape small{Collective::allreduce, 4, 0, 10, false};
  const Shape large{Collective::allreduce, 4, 0, 4096, false};
  EXPECT_EQ(choice(text, small).algorithm->name, "reduce-broadcast");
  const Choice made = choice(text, large);
  EXPECT_EQ(made.algorithm->name, "ring");
  EXPECT_EQ(made.reason, "ring@1K-inf");
  EXPECT_TRUE(made.passed_over.empty());
}

TEST(Overrides, WhatIsNotLegalIsPassedOverAndSaysWhy) {
  const Shape ordered{Collective::allreduce, 4, 0, 4096, true};
  const Choice next = choice("allreduce:ring;reduce-broadcast", ordered);
  EXPECT_EQ(next.algorithm->name, "reduce-broadcast");
  ASSERT_EQ(next.passed_over.size(), 1U);
  EXPECT_EQ(next.passed_over[0].find("ring: allreduce ring does not combine in the order of ranks"),
            0U);
  const Choice rule = choice("allreduce:ring", ordered);
  EXPECT_EQ(rule.origin, Origin::rule);
  EXPECT_EQ(rule.algorithm->name, choose(ordered, kBytes).algorithm->name);
  EXPECT_EQ(rule.passed_over, next.passed_over);
}

TEST(Overrides, OtherCollectivesKeepTheirRules) {
  const Shape shape{Collective::reduce, 4, 1, 4096, false};
  EXPECT_EQ(choice("allreduce:reduce-broadcast", shape).algorithm, choose(shape, kBytes).algorithm);
  EXPECT_EQ(choice("allreduce:reduce-broadcast", shape).origin, Origin::rule);
}

TEST(Overrides, ParametersThatAreNotGivenAreTheDefaultAndDegreesAreCutToTheRanks) {
  const Shape shape{Collective::broadcast, 9, 0, 1, false};
  EXPECT_EQ(name_of(choice("broadcast:fnomial", shape)), "fnomial(4)");
  EXPECT_EQ(name_of(choice("broadcast:fnomial(3)", shape)), "fnomial(3)");
  EXPECT_EQ(name_of(choice("broadcast:fnomial(1000)", shape)), "fnomial(9)");
  EXPECT_EQ(name_of(choice("broadcast:fnomial(4)", {Collective::broadcast, 2, 0, 1, false})),
            "fnomial(2)");
}

TEST(Overrides, NeverMeansNeitherByDefaultNorByALaterRule) {
  const Shape shape{Collective::broadcast, 5, 0, 100, false};
  ASSERT_EQ(choose(shape, kBytes).algorithm->name, "flat");
  const Choice made = choice("broadcast:^flat", shape);
  EXPECT_EQ(made.algorithm->name, "fnomial");  // the next of the rules
  EXPECT_EQ(made.origin, Origin::rule);
  EXPECT_EQ(made.reason, "^flat excludes flat, the rule's choice");
  const Choice later = choice("broadcast:^flat;flat", shape);
  EXPECT_EQ(later.algorithm->name, "fnomial");
  EXPECT_EQ(later.passed_over, std::vector<std::string>{"flat: ^flat stands before it"});
  // Above it, the rule counts; so does a range.
  EXPECT_EQ(choice("broadcast:flat@0-1K;^flat", shape).algorithm->name, "flat");
  EXPECT_EQ(choice("broadcast:^flat@200-300", shape).algorithm->name, "flat");
  EXPECT_EQ(choice("broadcast:^flat@100-300", shape).algorithm->name, "fnomial");
}

TEST(Overrides, NeverGivesWayWhereNothingElseIsLegal) {
  std::string text = "allreduce:";
  for (const Algorithm& each : algorithm::table()) {
    if (each.collective != Collective::allreduce || !each.keeps_order) continue;
    text += (text.back() == ':' ? "^" : ";^") + std::string(each.name);
  }
  const Choice made = choice(text, {Collective::allreduce, 4, 0, 10, true});
  EXPECT_TRUE(made.algorithm->keeps_order);
  ASSERT_EQ(made.passed_over.size(), 1U);
  EXPECT_NE(made.passed_over[0].find("no other algorithm is legal"), std::string::npos);
}

// A rank of a gather of unequal blocks knows its own block only: a choice by size would differ.
TEST(Overrides, RangesFitNoCallWhoseCountsAreLocal) {
  Shape shape{.collective = Collective::gather, .ranks = 3};
  shape.blocks = *schedule::Blocks::of_ranks({3, 0, 2});
  EXPECT_TRUE(has_local_counts(shape));
  EXPECT_EQ(choice("gather:linear@0-inf", shape).origin, Origin::override_);
  EXPECT_EQ(choice("gather:linear@0-1K", shape).origin, Origin::rule);
  EXPECT_EQ(choice("gather:linear@0-1K", {Collective::gather, 3, 0, 2, false}).origin,
            Origin::override_);
  // In an allgather all ranks know all counts; a rule sees their average.
  shape.collective = Collective::allgather;
  shape.blocks = *schedule::Blocks::of_ranks({30, 0, 60});
  EXPECT_EQ(choice("allgather:ring@30-31", shape).algorithm->name, "ring");
}

TEST(Overrides, AnythingLegalIsMadeOfAnyRow) {
  for (const Algorithm& each : algorithm::table()) {
    for (const int ranks : {1, 2, 3, 8, 13}) {
      const Shape shape{.collective = each.collective, .ranks = ranks};
      const Choice made = choose(shape, kBytes, {{OverrideRule{.algorithm = &each}}});
      EXPECT_TRUE(algorithm::build(*made.algorithm, shape, made.parameters, ranks - 1).ok());
      if (made.origin == Origin::rule) {
        EXPECT_EQ(made.passed_over.size(), 1U) << each.name;
      } else {
        EXPECT_EQ(made.algorithm, &each);
      }
    }
  }
}

}  // namespace
}  // namespace unisono::select::override_test
