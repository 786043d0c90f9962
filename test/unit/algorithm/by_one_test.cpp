// SPDX-License-Identifier: BSD-3-Clause
// Where one rank has to apply the operator: a row is legal if no other rank reduces in its
// schedules, and those are right. It is the root of a reduce, otherwise rank 0.
#include <gtest/gtest.h>

#include <set>

#include "check/check.hpp"
#include "harness/unequal_blocks.hpp"
#include "unit/algorithm/schedule_set.hpp"

namespace unisono::algorithm::test::by_one_test {
namespace {

constexpr int kMostRanks = 9;

std::set<int> ranks_that_apply(const std::vector<Schedule>& set) {
  std::set<int> ranks;
  for (const Schedule& one : set) {
    for (const schedule::Op& op : one.ops) {
      const bool applies = op.kind == schedule::OpKind::reduce ||
                           (op.kind == schedule::OpKind::sum && op.operand_count > 1);
      if (applies && op.target.count > 0) ranks.insert(one.rank);
    }
  }
  return ranks;
}

// Every reduction with each number of ranks, root and length; exact where the row sums exactly.
template <class Visit>
void for_each_shape(const Algorithm& row, const Visit& visit) {
  if (!schedule::is_reduction(row.collective)) return;
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int root = 0; root < (schedule::is_rooted(row.collective) ? ranks : 1); ++root) {
      for (const std::int64_t count : {0, 1, 2 * ranks + 3}) {
        Shape shape{.collective = row.collective, .ranks = ranks, .root = root, .count = count};
        shape.ordered = row.keeps_order;
        shape.exact = row.sums_exactly;
        visit(shape);
      }
    }
    if (!schedule::has_blocks(row.collective)) continue;
    Shape shape{.collective = row.collective, .ranks = ranks};
    shape.blocks = unisono::test::unequal_blocks(row.collective, ranks, 7, false);
    shape.exact = row.sums_exactly;
    visit(shape);
  }
}

TEST(ByOne, LegalRowsAreRightAndOneRankApplies) {
  std::set<std::pair<Collective, bool>> seen;
  for (const Algorithm& row : table()) {
    for_each_shape(row, [&](Shape shape) {
      shape.by_one = true;
      for (const Parameters& parameters : parameter_choices(row, shape)) {
        SCOPED_TRACE(name_of(row, shape, parameters));
        const std::vector<Schedule> set = build_set(row, shape, parameters);
        for (const check::Violation& violation : check::prove(set)) {
          ADD_FAILURE() << violation.message;
        }
        const int by = schedule::is_rooted(shape.collective) ? shape.root : 0;
        for (const int rank : ranks_that_apply(set)) EXPECT_EQ(rank, by);
        if (shape.ranks == kMostRanks) seen.insert({row.collective, row.sums_exactly});
      }
    });
  }
  EXPECT_EQ(seen.size(), 2U * 5) << "each reduction has a row, and one that sums exactly";
}

// Otherwise the setting would forbid parameters without a reason. Mock-ups do not count: they have
// flat trees in their reduce, which do the work of its serial row.
TEST(ByOne, IllegalRowsLetOthersApply) {
  for (const Algorithm& row : table()) {
    if (row.by_one == nullptr || !row.parts.empty()) continue;
    for_each_shape(row, [&](const Shape& shape) {
      if (shape.ranks < 4 || shape.count <= shape.ranks) return;
      Shape by_one = shape;
      by_one.by_one = true;
      for (const Parameters& parameters : parameter_choices(row, shape)) {
        if (is_legal(row, by_one, parameters)) continue;
        SCOPED_TRACE(name_of(row, shape, parameters));
        std::vector<Schedule> set = build_set(row, shape, parameters);
        const std::set<int> ranks = ranks_that_apply(set);
        const int by = schedule::is_rooted(shape.collective) ? shape.root : 0;
        EXPECT_FALSE(ranks == std::set<int>{by});
        for (Schedule& one : set) one.shape.by_one = true;
        const auto violations = check::prove(set);
        ASSERT_FALSE(violations.empty());
        EXPECT_EQ(violations.front().rule, check::Rule::by_several) << violations.front().message;
        EXPECT_NE(why_illegal(row, by_one, parameters).find("UNISONO_HETEROGENEOUS"),
                  std::string::npos);
      }
    });
  }
}

TEST(ByOne, CombinesInTheOrderOfRanks) {
  const Shape shape{.collective = Collective::scan, .ranks = 4, .count = 1, .by_one = true};
  EXPECT_EQ(default_parameters(*find(Collective::allreduce, "gather-release"),
                               {.collective = Collective::allreduce, .ranks = 33, .by_one = true})
                .values[0],
            31);
  EXPECT_TRUE(is_legal(*find(Collective::scan, "serial"), shape, {}));
  EXPECT_FALSE(is_legal(*find(Collective::scan, "linear"), shape, {}));
}

}  // namespace
}  // namespace unisono::algorithm::test::by_one_test
