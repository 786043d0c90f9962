// SPDX-License-Identifier: BSD-3-Clause
// Whether the ranks of a row that says so are alike: each the same ops on as many elements, sent to
// the same slots.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "unit/algorithm/schedule_set.hpp"

namespace unisono::algorithm::test::alike_test {
namespace {

using schedule::Op;
using schedule::OpKind;

// The difference between an op of one rank and that of another; empty if only peers and places
// differ.
std::string difference(const Schedule& a, const Op& x, const Schedule& b, const Op& y) {
  if (x.kind != y.kind) return "kinds";
  if (x.left.count != y.left.count || x.right.count != y.right.count ||
      x.target.count != y.target.count) {
    return "counts";
  }
  if (x.kind == OpKind::wait && x.slot != y.slot) return "awaited slots";
  if (x.kind == OpKind::copy && (x.left == x.target) != (y.left == y.target)) return "copies";
  const auto length = [](const schedule::Range& range) { return range.count; };
  if (!std::ranges::equal(a.operands_of(x), b.operands_of(y), {}, length, length)) {
    return "operands";
  }
  if (!std::ranges::equal(a.after_of(x), b.after_of(y))) return "predecessors";
  const auto slot = [](const schedule::Target& target) { return target.slot; };
  if (!std::ranges::equal(a.targets_of(x), b.targets_of(y), {}, slot, slot)) return "target slots";
  return {};
}

std::string difference(const Schedule& a, const Schedule& b) {
  const auto count = [](const schedule::Slot& slot) { return slot.count; };
  if (!std::ranges::equal(a.slots, b.slots, {}, count, count)) return "slots";
  if (a.ops.size() != b.ops.size()) return "numbers of ops";
  for (std::size_t i = 0; i < a.ops.size(); ++i) {
    const std::string what = difference(a, a.ops[i], b, b.ops[i]);
    if (!what.empty()) return fmt::format("{} of op {}", what, i);
  }
  return {};
}

int prove(const Algorithm& row, const Shape& shape) {
  int proved = 0;
  for (const Parameters& parameters : parameter_choices(row, shape)) {
    const Schedule first = row.build(shape, parameters, 0);
    for (int rank = 1; rank < shape.ranks; ++rank) {
      EXPECT_EQ(difference(first, row.build(shape, parameters, rank)), "")
          << describe(row, parameters) << " of " << shape.ranks << " ranks, " << shape.count
          << " elements: ranks 0 and " << rank;
    }
    ++proved;
  }
  return proved;
}

TEST(Alike, RanksAreWhereTheRowSaysSo) {
  for (const Algorithm& row : table()) {
    int proved = 0;
    for (int ranks = 1; ranks <= 64; ranks += ranks < 40 ? 1 : 8) {
      for (const std::int64_t count : {0, 1, 5, ranks, 3 * ranks}) {
        for (const bool ordered : {false, true}) {
          Shape shape{.collective = row.collective, .ranks = ranks};
          shape.count = row.collective == Collective::barrier ? 0 : count;
          shape.ordered = ordered && row.keeps_order && schedule::is_reduction(row.collective);
          if (ranks_are_alike(row, shape)) proved += prove(row, shape);
        }
      }
    }
    EXPECT_EQ(proved > 40, row.alike != Alike::never) << row.name << ": " << proved;
  }
}

// Each rank has the ops of rank 0, and its peers are as many ranks further on.
TEST(Alike, RanksRotateWhereTheRowSaysSo) {
  int rows = 0;
  for (const Algorithm& row : table()) {
    if (!row.rotates) continue;
    ++rows;
    for (int ranks = 1; ranks <= 40; ++ranks) {
      for (const std::int64_t count : {0, 1, 5}) {
        const Shape shape{.collective = row.collective, .ranks = ranks, .count = count};
        for (const Parameters& parameters : parameter_choices(row, shape)) {
          const Schedule first = row.build(shape, parameters, 0);
          for (int rank = 1; rank < ranks; ++rank) {
            const Schedule other = row.build(shape, parameters, rank);
            ASSERT_EQ(difference(first, other), "") << describe(row, parameters) << ", " << ranks;
            EXPECT_EQ(first.scratch_count, other.scratch_count);
            for (std::size_t i = 0; i < first.targets.size(); ++i) {
              ASSERT_EQ(other.targets[i].peer, (first.targets[i].peer + rank) % ranks)
                  << describe(row, parameters) << ", rank " << rank << " of " << ranks;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(rows, 2);
}

TEST(EffectiveParameters, GiveTheSameSchedules) {
  int compared = 0;
  for (const Algorithm& row : table()) {
    for (const int ranks : {2, 3, 4, 7, 8, 13}) {
      const Shape shape{.collective = row.collective,
                        .ranks = ranks,
                        .count = row.collective == Collective::barrier ? 0 : 20};
      const Parameters usual = default_parameters(row, shape);
      for (std::size_t i = 0; i < row.parameters.size(); ++i) {
        if (row.parameters[i].counted != Counted::halvings) continue;
        for (int value = row.parameters[i].low; value <= row.parameters[i].high; ++value) {
          Parameters parameters = usual;
          parameters.values[i] = value;
          const Parameters effective = effective_parameters(row, shape, parameters);
          EXPECT_LE(1 << effective.values[i], ranks);
          for (int rank = 0; rank < ranks; ++rank) {
            EXPECT_EQ(row.build(shape, parameters, rank), row.build(shape, effective, rank))
                << describe(row, parameters) << ", rank " << rank << " of " << ranks;
          }
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 150);
}

// After the halvings, a tree has the ranks of one group.
TEST(EffectiveParameters, ADegreeIsAtMostTheRanksOfAGroup) {
  const Algorithm& row = *find(Collective::reduce, "fnomial-split");
  int changed = 0;
  for (const int ranks : {2, 3, 4, 7, 8, 13, 16}) {
    const Shape shape{.collective = row.collective, .ranks = ranks, .root = ranks / 2, .count = 20};
    for (int splits = 1; splits <= 5; ++splits) {
      for (int degree = 2; degree <= ranks; ++degree) {
        const Parameters parameters{{splits, degree}};
        const Parameters effective = effective_parameters(row, shape, parameters);
        EXPECT_LE(effective.values[1], std::max(2, ranks >> effective.values[0]));
        changed += effective.values[1] != degree ? 1 : 0;
        for (int rank = 0; rank < ranks; ++rank) {
          EXPECT_EQ(row.build(shape, parameters, rank), row.build(shape, effective, rank))
              << splits << " splits, degree " << degree << ", rank " << rank << " of " << ranks;
        }
      }
    }
  }
  EXPECT_GT(changed, 50);
}

// No rank has more children within a host than there are other ranks.
TEST(EffectiveParameters, AFanInIsAtMostTheOtherRanksOfTheLargestHost) {
  int rows = 0, changed = 0;
  for (const Algorithm& row : table()) {
    const auto spec =
        std::ranges::find(row.parameters, Counted::children_in_host, &ParameterSpec::counted);
    if (spec == row.parameters.end()) continue;
    ++rows;
    const auto number = static_cast<std::size_t>(spec - row.parameters.begin());
    for (const std::vector<int>& labels :
         {std::vector{0, 0, 0, 1, 1, 1, 1, 2, 2}, std::vector{0, 1, 0, 1, 0, 1},
          std::vector{0, 1, 2, 3}, std::vector{0, 0, 0, 0, 0}}) {
      Shape shape{.collective = row.collective,
                  .ranks = static_cast<int>(labels.size()),
                  .count = row.collective == Collective::barrier ? 0 : 20,
                  .hosts = topology::HostMap::of_labels(labels)};
      if (schedule::is_rooted(row.collective)) shape.root = shape.ranks / 2;
      for (int value = spec->low; value <= shape.ranks; ++value) {
        Parameters parameters = default_parameters(row, shape);
        parameters.values[number] = value;
        const Parameters effective = effective_parameters(row, shape, parameters);
        changed += effective != parameters ? 1 : 0;
        for (int rank = 0; rank < shape.ranks; ++rank) {
          EXPECT_EQ(row.build(shape, parameters, rank), row.build(shape, effective, rank))
              << describe(row, parameters) << ", rank " << rank << " of " << shape.ranks;
        }
      }
    }
  }
  EXPECT_EQ(rows, 4);
  EXPECT_GT(changed, 40);
}

TEST(Alike, UnequalBlocksAndSharesAreNot) {
  const Algorithm& ring = *find(Collective::allgather, "ring");
  Shape shape{.collective = Collective::allgather, .ranks = 3, .count = 2};
  EXPECT_TRUE(ranks_are_alike(ring, shape));
  shape.count = 0;
  shape.blocks = *schedule::Blocks::of_ranks({1, 2, 3});
  EXPECT_FALSE(ranks_are_alike(ring, shape));

  const Algorithm& shares = *find(Collective::allreduce, "ring");
  Shape vector{.collective = Collective::allreduce, .ranks = 3, .count = 6};
  EXPECT_TRUE(ranks_are_alike(shares, vector));
  vector.count = 7;
  EXPECT_FALSE(ranks_are_alike(shares, vector));
}

}  // namespace
}  // namespace unisono::algorithm::test::alike_test
