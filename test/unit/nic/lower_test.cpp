// SPDX-License-Identifier: BSD-3-Clause
// Lowering against the arithmetic of the tree that the schedules are made from, for all numbers of
// ranks up to 70, degrees and roots; and, for each thing that the NIC program cannot do, a schedule
// that does it and the reason that is given.
#include "nic/lowering/lower.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "algorithm/algorithm.hpp"
#include "algorithm/pattern/fnomial.hpp"
#include "nic/program/tables.h"
#include "schedule/builder.hpp"

namespace unisono::nic::lower_test {
namespace {

using algorithm::Collective;
using algorithm::Parameters;
using algorithm::pattern::FnomialTree;
using schedule::Builder;
using schedule::Range;
using schedule::Schedule;
using schedule::Shape;

constexpr int kRanksMax = 70;

Shape shape_of(Collective collective, int ranks, int root = 0, std::int64_t count = 5) {
  Shape shape;
  shape.collective = collective;
  shape.ranks = ranks;
  shape.root = root;
  shape.count = collective == Collective::barrier ? 0 : count;
  return shape;
}

// With its first parameter, if it has one, cut to what it takes: a degree beyond the number of
// ranks is that number.
Schedule build(const char* name, const Shape& shape, int parameter, int rank) {
  const algorithm::Algorithm* row = algorithm::find(shape.collective, name);
  Parameters parameters = algorithm::default_parameters(*row, shape);
  if (!row->parameters.empty()) {
    const algorithm::ParameterSpec& spec = row->parameters[0];
    const int high = spec.high > 0 ? spec.high : std::max(spec.low, shape.ranks);
    parameters.values[0] = std::clamp(parameter, spec.low, high);
  }
  auto schedule = algorithm::build(*row, shape, parameters, rank);
  EXPECT_TRUE(schedule.ok()) << (schedule.ok() ? "" : schedule.error().message);
  return *std::move(schedule);
}

// The nodes of all ranks; where one is refused, the test fails with its reason.
std::vector<Node> lower_all(const char* name, const Shape& shape, int parameter) {
  std::vector<Node> nodes;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    auto node = lower(build(name, shape, parameter, rank));
    if (!node.ok()) {
      ADD_FAILURE() << node.error().message;
      return {};
    }
    nodes.push_back(*std::move(node));
  }
  return nodes;
}

// Each node is that of the tree; its children are combined in the tree's order.
void expect_tree(const std::vector<Node>& nodes, const FnomialTree& tree, int root,
                 bool returns_values) {
  for (const Node& node : nodes) {
    const auto place = tree.node(node.rank);
    EXPECT_EQ(node.parent, node.rank == root ? -1 : place.parent);
    ASSERT_EQ(static_cast<int>(node.children.size()), place.children);
    for (int child = 0; child < place.children; ++child) {
      EXPECT_EQ(node.children[static_cast<std::size_t>(child)], tree.child(node.rank, child));
    }
    if (node.rank != root) {
      const Node& parent = nodes[static_cast<std::size_t>(node.parent)];
      EXPECT_EQ(node.own_slot - parent.first_slot, place.child_number);
    }
    EXPECT_EQ(node.returns_values, returns_values);
  }
  const base::Status fits = check_tree(nodes);
  EXPECT_TRUE(fits.ok()) << fits.error().message;
}

TEST(Lower, ReduceUpAnyTreeToAnyRoot) {
  for (int ranks = 2; ranks <= kRanksMax; ++ranks) {
    for (const int degree : {2, 3, 4, 8, 32}) {
      for (const int root : {0, 1, ranks / 2, ranks - 1}) {
        const auto nodes = lower_all("fnomial", shape_of(Collective::reduce, ranks, root), degree);
        ASSERT_EQ(static_cast<int>(nodes.size()), ranks) << "degree " << degree;
        expect_tree(nodes, FnomialTree(ranks, degree, root), root, false);
        EXPECT_TRUE(nodes[static_cast<std::size_t>(root)].multicasts);
        for (const Node& node : nodes) EXPECT_EQ(node.down_source, node.rank == root ? -1 : root);
      }
    }
  }
}

TEST(Lower, AllreduceAndBarrierThatGatherAndMulticast) {
  for (int ranks = 2; ranks <= kRanksMax; ++ranks) {
    for (const int fanin : {1, 2, 3, 7, 31}) {
      for (const Collective collective : {Collective::allreduce, Collective::barrier}) {
        const auto nodes = lower_all("gather-release", shape_of(collective, ranks), fanin);
        ASSERT_EQ(static_cast<int>(nodes.size()), ranks) << "fan-in " << fanin;
        expect_tree(nodes, FnomialTree(ranks, fanin + 1), 0, collective == Collective::allreduce);
        EXPECT_TRUE(nodes[0].multicasts);
        for (const Node& node : nodes) EXPECT_EQ(node.down_source, node.rank == 0 ? -1 : 0);
      }
    }
  }
}

// Each piece has the tree of the whole vector, turned to another root.
TEST(Lower, PiecesThatGoByTreesOfTheirOwn) {
  const auto& row = *algorithm::find(Collective::allreduce, "split-release");
  for (int ranks = 2; ranks <= kRanksMax; ++ranks) {
    for (const int splits : {0, 1, 2, 3}) {
      for (const int fanin : {1, 2, 7, 31}) {
        schedule::Shape shape = shape_of(Collective::allreduce, ranks);
        shape.count = 100;
        std::vector<std::vector<Node>> trees;
        for (int rank = 0; rank < ranks; ++rank) {
          const auto nodes =
              lower_pieces(*algorithm::build(row, shape, {{splits, std::min(fanin, ranks)}}, rank));
          ASSERT_TRUE(nodes.ok()) << nodes.error().message;
          trees.resize(nodes->size());
          for (std::size_t tree = 0; tree < trees.size(); ++tree) {
            trees[tree].push_back((*nodes)[tree]);
          }
        }
        EXPECT_EQ(trees.size(),
                  std::min(1U << splits, std::bit_floor(static_cast<unsigned>(ranks))));
        for (int root = 0; std::cmp_less(root, trees.size()); ++root) {
          const auto& nodes = trees[static_cast<std::size_t>(root)];
          expect_tree(nodes, FnomialTree(ranks, fanin + 1, root), root, true);
          EXPECT_TRUE(nodes[static_cast<std::size_t>(root)].multicasts);
        }
      }
    }
  }
}

TEST(Lower, PiecesMustNotOverlap) {
  const auto& row = *algorithm::find(Collective::allreduce, "reduce-scatter-allgather");
  schedule::Shape shape = shape_of(Collective::allreduce, 4);
  shape.count = 8;
  const auto nodes = lower_pieces(*algorithm::build(row, shape, {}, 0));
  ASSERT_FALSE(nodes.ok());
  EXPECT_EQ(nodes.error().message,
            "the NIC cannot run this: elements 0 to 4 of 8 are no piece of the vector that others "
            "have nothing of");
}

void expect_way_down_the_tree(const char* algorithm, Collective collective) {
  for (int ranks = 2; ranks <= kRanksMax; ++ranks) {
    for (const int degree : {2, 3, 8}) {
      const auto nodes = lower_all(algorithm, shape_of(collective, ranks), degree);
      ASSERT_EQ(static_cast<int>(nodes.size()), ranks) << "degree " << degree;
      expect_tree(nodes, FnomialTree(ranks, degree), 0, collective == Collective::allreduce);
      for (const Node& node : nodes) {
        EXPECT_FALSE(node.multicasts);
        EXPECT_EQ(node.down_source, node.parent);
        EXPECT_EQ(std::vector<int>(node.forwards.rbegin(), node.forwards.rend()), node.children);
      }
    }
  }
}

TEST(Lower, AllreduceAndBarrierThatGoDownTheTree) {
  expect_way_down_the_tree("reduce-broadcast", Collective::allreduce);
  expect_way_down_the_tree("gather-broadcast", Collective::barrier);
}

// Why a schedule cannot be lowered; "" if it can.
std::string reason(const Schedule& schedule) {
  const auto node = lower(schedule);
  if (node.ok()) return "";
  EXPECT_EQ(node.error().code, base::Code::unsupported);
  return node.error().message;
}

TEST(LowerRefuses, WhatIsNoReductionOrBarrier) {
  EXPECT_EQ(reason(build("fnomial", shape_of(Collective::broadcast, 4), 2, 1)),
            "the NIC cannot run this broadcast at rank 1: its program knows barrier, reduce and "
            "allreduce only");
  EXPECT_EQ(reason(build("fnomial", shape_of(Collective::reduce, 1), 2, 0)),
            "the NIC cannot run this reduce at rank 0: a single rank has nobody to send to");
}

TEST(LowerRefuses, ExchangesAmongEquals) {
  EXPECT_EQ(reason(build("pairwise", shape_of(Collective::allreduce, 4), 0, 0)),
            "the NIC cannot run this allreduce at rank 0, op 2: it combines after it has sent its "
            "sum");
  EXPECT_EQ(reason(build("dissemination", shape_of(Collective::barrier, 8), 0, 0)),
            "the NIC cannot run this barrier at rank 0, op 3: it waits for more than the result "
            "after it has sent");
}

TEST(LowerRefuses, AVectorThatIsSplitOverTrees) {
  EXPECT_EQ(reason(build("fnomial-split", shape_of(Collective::reduce, 8, 0, 16), 1, 0)),
            "the NIC cannot run this reduce at rank 0, op 0: the root sends; the tree has to end "
            "at it");
}

TEST(LowerRefuses, AnOrderedReduceToAnotherRoot) {
  Shape shape = shape_of(Collective::reduce, 4, 2);
  shape.ordered = true;
  EXPECT_EQ(reason(build("fnomial", shape, 2, 2)),
            "the NIC cannot run this reduce at rank 2, op 2: the root sends; the tree has to end "
            "at it");
}

TEST(LowerRefuses, TooManyChildren) {
  const int ranks = UNISONO_NIC_CHILDREN_MAX + 2;
  EXPECT_EQ(
      reason(build("fnomial", shape_of(Collective::reduce, ranks), ranks, 0)),
      "the NIC cannot run this reduce at rank 0, op 502: a node takes 251 children; a tree of "
      "lower degree has fewer");
  EXPECT_EQ(reason(build("fnomial", shape_of(Collective::reduce, ranks - 1), ranks - 1, 0)), "");
}

// Schedules that no algorithm writes: rank 1 of 3, whose child is 2 and whose parent is 0.
class HandWritten : public testing::Test {
 protected:
  static constexpr std::int64_t kCount = 5;
  Builder begin() {
    Builder b(shape_of(Collective::allreduce, 3), 1);
    b.slot(0, kCount);
    b.slot(2, kCount);
    return b;
  }
  const Range input = schedule::input(0, kCount);
  const Range output = schedule::output(0, kCount);

  static std::string why(Builder b) {
    const std::string text = reason(std::move(b).take());
    return text.substr(text.find(": ") + 2);
  }
};

TEST_F(HandWritten, TheRightOneIsTaken) {
  Builder b = begin();
  const auto arrived = b.wait(1);
  const auto sum = b.reduce(output, input, b.of(1), {arrived});
  const auto given = b.send(0, 7, output, {sum});
  b.copy(output, b.of(0), {b.wait(0), given});
  const auto node = lower(std::move(b).take());
  ASSERT_TRUE(node.ok()) << node.error().message;
  const Node expected{.rank = 1,
                      .ranks = 3,
                      .parent = 0,
                      .own_slot = 7,
                      .first_slot = 1,
                      .children = {2},
                      .returns_values = true,
                      .down_source = 0,
                      .multicasts = false,
                      .forwards = {}};
  EXPECT_EQ(*node, expected);
}

TEST_F(HandWritten, APartOfTheVector) {
  Builder b = begin();
  b.reduce(schedule::output(0, 3), schedule::input(0, 3), schedule::slot_range(1, 0, 3),
           {b.wait(1)});
  EXPECT_EQ(why(std::move(b)), "it combines elements 0 to 3 of 5; a NIC takes vectors whole");
}

TEST_F(HandWritten, TheChildOnTheLeft) {
  Builder b = begin();
  const auto arrived = b.wait(1);
  b.reduce(output, b.of(1), input, {arrived});
  EXPECT_EQ(why(std::move(b)),
            "the operands are not what there is so far and then the child that has arrived");
}

TEST_F(HandWritten, TheOwnVectorInsteadOfTheSum) {
  Builder b = begin();
  b.reduce(output, input, b.of(1), {b.wait(1)});
  b.send(0, 0, input);
  EXPECT_EQ(why(std::move(b)), "it sends up something other than its sum");
}

TEST_F(HandWritten, NothingComesBack) {
  Builder b = begin();
  b.reduce(output, input, b.of(1), {b.wait(1)});
  b.send(0, 0, output);
  EXPECT_EQ(why(std::move(b)), "the result does not come back");
}

TEST_F(HandWritten, TwoReports) {
  Builder b = begin();
  b.reduce(output, input, b.of(1), {b.wait(1)});
  b.send(0, 0, output);
  b.send(2, 0, output);
  EXPECT_EQ(why(std::move(b)), "it sends to rank 2 after it has reported to rank 0");
}

TEST_F(HandWritten, AContributionThatIsNotCombined) {
  Builder b = begin();
  b.wait(1);
  b.send(0, 0, input);
  EXPECT_EQ(why(std::move(b)), "it sends up something other than its sum");
}

TEST_F(HandWritten, AMulticastFromBelow) {
  Builder b = begin();
  const schedule::Target others[] = {{0, 0}, {2, 0}};
  b.reduce(output, input, b.of(1), {b.wait(1)});
  b.send(0, 0, output);
  b.multicast(others, output);
  EXPECT_EQ(why(std::move(b)), "only the root of the tree multicasts, once");
}

TEST_F(HandWritten, AMulticastToSome) {
  Builder b = begin();
  b.reduce(output, input, b.of(1), {b.wait(1)});
  const schedule::Target one[] = {{2, 0}};
  b.multicast(one, output);
  EXPECT_EQ(why(std::move(b)), "it multicasts to 1 of the 2 other ranks");
}

TEST_F(HandWritten, ACopyOfTheInput) {
  Builder b = begin();
  b.copy(output, input);
  EXPECT_EQ(why(std::move(b)), "it copies something other than the result to the output");
}

TEST(CheckTree, FindsRanksThatDoNotFit) {
  const auto good = lower_all("gather-release", shape_of(Collective::allreduce, 6), 2);
  ASSERT_TRUE(check_tree(good).ok());
  auto bad = good;
  bad[4].own_slot += 1;
  EXPECT_NE(check_tree(bad).error().message.find("which does not expect it"), std::string::npos);
  bad = good;
  bad[2].down_source = 1;
  EXPECT_EQ(check_tree(bad).error().message,
            "no tree for the NIC: rank 2 expects the result from rank 1, which does not send it");
  bad = good;
  bad[0].parent = 1;
  EXPECT_FALSE(check_tree(bad).ok());
  // Two ranks that exchange are both lowered, each as the child of the other.
  const auto equals = lower_all("dissemination", shape_of(Collective::barrier, 2), 0);
  EXPECT_FALSE(check_tree(equals).ok());
}

TEST(LowerOperator, KnowsWhatTheProgramKnows) {
  using arith::Operator;
  using arith::Type;
  EXPECT_EQ(*lower_operator(Operator::sum, Type::float64), UNISONO_NIC_SUM_FLOAT64);
  EXPECT_EQ(*lower_operator(Operator::sum, Type::uint32), UNISONO_NIC_SUM_INT32);
  EXPECT_EQ(*lower_operator(Operator::min, Type::uint64), UNISONO_NIC_MIN_UINT64);
  EXPECT_EQ(*lower_operator(Operator::max, Type::int32), UNISONO_NIC_MAX_INT32);
  EXPECT_EQ(*lower_operator(Operator::bitwise_xor, Type::int8), UNISONO_NIC_XOR);
  EXPECT_EQ(*lower_operator(Operator::sum, Type::bfloat16), UNISONO_NIC_SUM_BFLOAT16);
  EXPECT_EQ(*lower_operator(Operator::prod, Type::int64), UNISONO_NIC_PRODUCT_INT64);
  EXPECT_EQ(*lower_operator(Operator::prod, Type::uint32), UNISONO_NIC_PRODUCT_INT32);
  EXPECT_EQ(*lower_operator(Operator::logical_or, Type::int16), UNISONO_NIC_EITHER_INT16);
  EXPECT_EQ(*lower_operator(Operator::logical_xor, Type::uint8), UNISONO_NIC_ONE_INT8);
  EXPECT_EQ(*lower_operator(Operator::sum, Type::complex128), UNISONO_NIC_SUM_FLOAT64);
  EXPECT_EQ(lower_operator(Operator::prod, Type::complex64).error().message,
            "the NIC cannot combine complex64 by prod: it knows all operators of integers and of "
            "real numbers, sums of complex numbers, and no pairs");
  EXPECT_FALSE(lower_operator(Operator::bitwise_and, Type::float64).ok());
  EXPECT_FALSE(lower_operator(Operator::minloc, Type::float64_int32).ok());
  EXPECT_FALSE(lower_operator(Operator::logical_and, Type::float32).ok());
  EXPECT_FALSE(lower_operator(Operator::sum, Type::byte).ok());
}

}  // namespace
}  // namespace unisono::nic::lower_test
