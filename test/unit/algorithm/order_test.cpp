// SPDX-License-Identifier: BSD-3-Clause
// The brackets of every result. They depend on the shape and parameters only, never on the order of
// arrival. All ranks of an allreduce get the same ones, and so the same bits in floating point.
// Ordered reductions have the ranks in order.
#include <gtest/gtest.h>

#include <numeric>

#include "unit/algorithm/expression.hpp"
#include "unit/algorithm/schedule_set.hpp"

namespace unisono::algorithm::test::order_test {
namespace {

// The ranks of an expression from left to right.
std::vector<int> leaves(const std::string& expression) {
  std::vector<int> ranks;
  bool in_number = false;
  for (const char c : expression) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !in_number) ranks.push_back(0);
    if (digit) ranks.back() = ranks.back() * 10 + (c - '0');
    in_number = digit;
  }
  return ranks;
}

// How many ranks, from 0 on, are joined in the output of `rank`.
int contributors(const Shape& shape, int rank) {
  if (shape.collective == Collective::scan) return rank + 1;
  return shape.collective == Collective::exscan ? rank : shape.ranks;
}

void expect_result(const Algorithm& row, const Shape& shape, const Outcome& run) {
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const auto& output = run.outputs[static_cast<std::size_t>(rank)];
    std::vector<int> all(static_cast<std::size_t>(contributors(shape, rank)));
    std::iota(all.begin(), all.end(), 0);
    for (const std::string& expression : output) {
      std::vector<int> ranks = leaves(expression);
      if (!shape.ordered || !row.keeps_order) std::ranges::sort(ranks);
      ASSERT_EQ(ranks, all) << expression;
    }
    if (shape.collective == Collective::allreduce) {
      ASSERT_EQ(output, run.outputs[0]);
    }
  }
}

TEST(Order, BracketsAreTheSameOnAllRanksAndInAnyOrderOfArrival) {
  for (const Algorithm& row : table()) {
    if (!schedule::is_reduction(row.collective)) continue;
    for (const int ranks : {1, 2, 3, 5, 8, 11, 13}) {
      for (const bool ordered : {false, true}) {
        if (ordered && !row.keeps_order) continue;
        Shape shape{row.collective, ranks, 0, ranks + 2, ordered};
        if (schedule::is_rooted(row.collective)) shape.root = ranks / 2;
        for (const Parameters& parameters : parameter_choices(row, shape)) {
          SCOPED_TRACE(name_of(row, shape, parameters));
          const std::vector<Schedule> set = build_set(row, shape, parameters);
          const Outcome expected = Executor(set, 1, false).run();
          ASSERT_NO_FATAL_FAILURE(expect_result(row, shape, expected));
          for (std::uint64_t seed = 2; seed < 6; ++seed) {
            ASSERT_EQ(Executor(set, seed, seed % 2 == 0).run().outputs, expected.outputs);
          }
        }
      }
    }
  }
}

// A result of an exact row has the one bracket of a sum step, those of all other rows have pairs.
TEST(Order, ExactRowsHaveOneBracket) {
  for (const Algorithm& row : table()) {
    if (!schedule::is_reduction(row.collective)) continue;
    const Shape shape{.collective = row.collective, .ranks = 5, .count = 7};
    const Outcome run =
        Executor(build_set(row, shape, default_parameters(row, shape)), 1, true).run();
    for (const auto& output : run.outputs) {
      for (const std::string& expression : output) {
        if (expression.size() == 1) continue;  // one contribution
        EXPECT_EQ(expression.find('(') == std::string::npos, row.sums_exactly) << expression;
        EXPECT_EQ(expression.rfind('['), row.sums_exactly ? 0 : std::string::npos) << expression;
      }
    }
    Shape exact = shape;
    exact.exact = true;
    EXPECT_EQ(why_illegal(row, exact, default_parameters(row, exact)).empty(), row.sums_exactly)
        << row.name;
  }
}

// The expression of element 0 at a rank (the root, if there is one) for five ranks, as the
// algorithms' files say.
std::string brackets(Collective collective, std::string_view name, int parameter, int rank,
                     bool ordered) {
  const Shape shape{collective, 5, schedule::is_rooted(collective) ? rank : 0, 5, ordered};
  const Algorithm* row = find(collective, name);
  if (row == nullptr) return "no such algorithm";
  Parameters parameters = default_parameters(*row, shape);
  parameters.values[0] = parameter;
  if (name == "fnomial-split") parameters.values[1] = 2;  // degree
  const Outcome run = Executor(build_set(*row, shape, parameters), 1, false).run();
  return run.outputs[static_cast<std::size_t>(rank)][0];
}

TEST(Order, FiveRanks) {
  const auto reduce = Collective::reduce;
  const auto allreduce = Collective::allreduce;
  EXPECT_EQ(brackets(reduce, "serial", 0, 2, false), "((((0 1) 2) 3) 4)");
  EXPECT_EQ(brackets(reduce, "fnomial", 2, 0, false), "(((0 1) (2 3)) 4)");
  EXPECT_EQ(brackets(reduce, "fnomial", 2, 2, false), "(((2 3) (4 0)) 1)");
  EXPECT_EQ(brackets(reduce, "fnomial", 2, 2, true), "(((0 1) (2 3)) 4)");
  EXPECT_EQ(brackets(reduce, "fnomial-split", 1, 0, false), "(((0 1) 2) (3 4))");
  EXPECT_EQ(brackets(reduce, "fnomial-split", 1, 2, false), "(((2 3) 4) (0 1))");
  EXPECT_EQ(brackets(reduce, "fnomial-split", 1, 2, true), "(((0 1) 2) (3 4))");
  EXPECT_EQ(brackets(reduce, "rabenseifner", 0, 0, false), "(((0 1) 2) (3 4))");
  EXPECT_EQ(brackets(reduce, "rabenseifner", 0, 3, false), "(((0 1) 2) (3 4))");
  EXPECT_EQ(brackets(reduce, "binary", 1, 2, false), "(((0 1) 2) (3 4))");
  EXPECT_EQ(brackets(reduce, "binary", 1, 0, false), "(((3 4) 0) (1 2))");
  EXPECT_EQ(brackets(reduce, "binary", 1, 0, true), "(((0 1) 2) (3 4))");
  EXPECT_EQ(brackets(reduce, "chain", 1, 2, false), "(((0 1) 2) (3 4))");
  EXPECT_EQ(brackets(reduce, "chain", 3, 0, false), "(0 (1 (2 (3 4))))");
  EXPECT_EQ(brackets(allreduce, "recursive-multiplying", 4, 0, false), "((((0 1) 2) 3) 4)");
  EXPECT_EQ(brackets(allreduce, "recursive-multiplying", 2, 0, false), "(((0 1) 2) (3 4))");
  EXPECT_EQ(brackets(allreduce, "pairwise", 0, 0, false), "(((0 1) 2) (3 4))");
  EXPECT_EQ(brackets(allreduce, "reduce-broadcast", 2, 0, false), "(((0 1) (2 3)) 4)");
  EXPECT_EQ(brackets(allreduce, "gather-release", 2, 0, false), "(((0 1) 2) (3 4))");
  EXPECT_EQ(brackets(allreduce, "gather-release", 4, 0, false), "((((0 1) 2) 3) 4)");
  EXPECT_EQ(brackets(allreduce, "ring", 0, 0, false), "((((0 1) 2) 3) 4)");
  EXPECT_EQ(brackets(allreduce, "reduce-scatter-allgather", 0, 0, false), "(((0 1) 2) (3 4))");
  const auto reduce_scatter = Collective::reduce_scatter;
  EXPECT_EQ(brackets(reduce_scatter, "pairwise", 0, 2, false), "((((0 1) 2) 3) 4)");
  EXPECT_EQ(brackets(reduce_scatter, "recursive-halving", 0, 4, false), "(((0 1) 3) (2 4))");
  EXPECT_EQ(brackets(reduce_scatter, "reduce-scatter", 2, 3, false), "(((0 1) (2 3)) 4)");
  EXPECT_EQ(brackets(reduce_scatter, "ring", 0, 0, false), "((((1 2) 3) 4) 0)");
  EXPECT_EQ(brackets(allreduce, "exact-scatter", 0, 2, false), "[0 1 2 3 4]");
  EXPECT_EQ(brackets(reduce, "exact-direct", 0, 2, false), "[0 1 2 3 4]");
  EXPECT_EQ(brackets(Collective::exscan, "exact-direct", 0, 3, false), "[0 1 2]");
  EXPECT_EQ(brackets(Collective::scan, "linear", 0, 3, false), "(((0 1) 2) 3)");
  EXPECT_EQ(brackets(Collective::scan, "recursive-doubling", 0, 4, false), "(0 ((1 2) (3 4)))");
  EXPECT_EQ(brackets(Collective::exscan, "linear", 0, 3, false), "((0 1) 2)");
  EXPECT_EQ(brackets(Collective::exscan, "recursive-doubling", 0, 4, false), "(0 ((1 2) 3))");
  EXPECT_EQ(brackets(reduce_scatter, "serial", 0, 3, false), "((((0 1) 2) 3) 4)");
  EXPECT_EQ(brackets(reduce_scatter, "exact-serial", 0, 3, false), "[0 1 2 3 4]");
  EXPECT_EQ(brackets(Collective::scan, "serial", 0, 3, false), "(((0 1) 2) 3)");
  EXPECT_EQ(brackets(Collective::exscan, "serial", 0, 3, false), "((0 1) 2)");
  EXPECT_EQ(brackets(Collective::exscan, "exact-serial", 0, 4, false), "[0 1 2 3]");
}

// Data that is not combined is delivered unchanged, whatever arrives first.
TEST(Order, MovedVectorsArriveUnchanged) {
  for (const Algorithm& row : table()) {
    if (schedule::is_reduction(row.collective)) continue;
    for (const int ranks : {1, 2, 5, 8, 11}) {
      Shape shape{row.collective, ranks, 0, 3, false};
      if (schedule::is_rooted(row.collective)) shape.root = ranks - 1;
      std::vector<std::string> expected(3, std::to_string(shape.root));
      if (schedule::has_blocks(row.collective) && row.collective != Collective::scatter) {
        expected.clear();
        for (int rank = 0; rank < ranks; ++rank)
          expected.insert(expected.end(), 3, std::to_string(rank));
      }
      const Parameters parameters = default_parameters(row, shape);
      if (!why_illegal(row, shape, parameters).empty()) continue;
      const std::vector<Schedule> set = build_set(row, shape, parameters);
      for (std::uint64_t seed = 1; seed < 4; ++seed) {
        const Outcome run = Executor(set, seed, seed % 2 == 0).run();
        for (std::size_t rank = 0; rank < run.outputs.size(); ++rank) {
          if (!run.outputs[rank].empty()) {
            ASSERT_EQ(run.outputs[rank], expected) << row.name << " on " << ranks << " ranks";
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace unisono::algorithm::test::order_test
