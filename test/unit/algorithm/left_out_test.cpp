// SPDX-License-Identifier: BSD-3-Clause
// Choices by price build schedules with what they keep from others, or leave their steps out. What
// they look at is the same.
#include <gtest/gtest.h>

#include <vector>

#include "algorithm/mock/slot_counts.hpp"
#include "schedule/spares.hpp"
#include "unit/algorithm/schedule_set.hpp"

namespace unisono::algorithm::test::left_out_test {
namespace {

using schedule::Op;
using schedule::OpKind;

// A mock-up's schedules are the same where those of its parts are kept for the next rank, in any
// order of ranks.
TEST(MockUp, HasTheSameScheduleWherePartsAreKept) {
  int rows = 0;
  for (const Algorithm& row : table()) {
    if (row.parts.empty()) continue;
    ++rows;
    mock::SlotCounts kept;
    for (const int ranks : {2, 5, 8}) {
      for (const std::int64_t count : {3, 40}) {
        Shape shape{.collective = row.collective, .ranks = ranks, .count = count};
        if (schedule::is_rooted(row.collective)) shape.root = ranks - 1;
        const Parameters usual = default_parameters(row, shape);
        for (int i = 0; i < 2 * ranks; ++i) {
          const int rank = i * 3 % ranks;
          const mock::SlotCounts::Use use(kept);
          const Schedule with_kept = row.build(shape, usual, rank);
          mock::SlotCounts none;
          const mock::SlotCounts::Use use_none(none);
          EXPECT_EQ(with_kept, row.build(shape, usual, rank))
              << describe(row, usual) << ", rank " << rank << " of " << ranks;
        }
      }
    }
  }
  EXPECT_GT(rows, 8);
}

// The number of elements of each multicast, and its targets.
struct Multicast {
  std::int64_t count = 0;
  std::vector<schedule::Target> targets;

  bool operator==(const Multicast&) const = default;
};

std::vector<Multicast> multicasts_of(const Schedule& schedule) {
  std::vector<Multicast> all;
  for (const Op& op : schedule.ops) {
    if (op.kind != OpKind::multicast) continue;
    const auto targets = schedule.targets_of(op);
    all.push_back({op.left.count, {targets.begin(), targets.end()}});
  }
  return all;
}

TEST(WithoutSteps, SlotsScratchMemoryAndMulticastsAreThere) {
  int rows = 0, multicasts = 0;
  for (const Algorithm& row : table()) {
    ++rows;
    for (const int ranks : {2, 5, 8}) {
      for (const std::int64_t count : {3, 40}) {
        Shape shape{.collective = row.collective,
                    .ranks = ranks,
                    .count = row.collective == Collective::barrier ? 0 : count};
        shape.exact = row.sums_exactly;
        if (schedule::is_rooted(row.collective)) shape.root = ranks - 1;
        const Parameters usual = default_parameters(row, shape);
        if (!is_legal(row, shape, usual)) continue;
        for (int rank = 0; rank < ranks; ++rank) {
          const Schedule whole = row.build(shape, usual, rank);
          const schedule::Spares::WithoutSteps without;
          const Schedule left = row.build(shape, usual, rank);
          SCOPED_TRACE(describe(row, usual) + ", rank " + std::to_string(rank));
          EXPECT_EQ(left.slots, whole.slots);
          EXPECT_EQ(left.scratch_count, whole.scratch_count);
          const auto expected = multicasts_of(whole);
          EXPECT_EQ(multicasts_of(left), expected);
          EXPECT_EQ(left.ops.size(), expected.size());
          multicasts += static_cast<int>(expected.size());
        }
      }
    }
  }
  EXPECT_GT(rows, 80);
  EXPECT_GT(multicasts, 50);
}

}  // namespace
}  // namespace unisono::algorithm::test::left_out_test
