// SPDX-License-Identifier: BSD-3-Clause
// Every row of the table is proved for small groups: all shapes that differ in how counts divide,
// in the place of the root, in order, in the parameters, and in the lengths of blocks. `unisono
// check --all` goes on to 70 ranks.
#include <gtest/gtest.h>

#include <set>

#include "check/check.hpp"
#include "harness/host_maps.hpp"
#include "harness/scale.hpp"
#include "harness/unequal_blocks.hpp"
#include "unit/algorithm/schedule_set.hpp"

namespace unisono::algorithm::test::prove_test {
namespace {

// A few ranks suffice for the bounds and corner cases that sanitizers look for.
constexpr int kMostRanks = harness::kSanitized ? 9 : 16;

int roots(const Shape& shape) { return schedule::is_rooted(shape.collective) ? shape.ranks : 1; }

std::set<std::int64_t> counts(const Shape& shape) {
  if (shape.collective == Collective::barrier) return {0};
  const std::int64_t ranks = shape.ranks;
  return {0, 1, 2, ranks - 1, ranks, 2 * ranks + 3};
}

void prove_shape(const Algorithm& row, const Shape& shape) {
  for (const Parameters& parameters : parameter_choices(row, shape)) {
    const std::vector<Schedule> set = build_set(row, shape, parameters);
    for (const check::Violation& violation : check::prove(set)) {
      ADD_FAILURE() << name_of(row, shape, parameters) << ": " << violation.message;
    }
  }
}

void prove_unequal_blocks(const Algorithm& row, Shape shape) {
  if (!schedule::has_blocks(row.collective) || !row.unequal_blocks) return;
  shape.count = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    shape.blocks = unisono::test::unequal_blocks(row.collective, shape.ranks, seed, seed % 2 == 0);
    shape.ordered = schedule::is_reduction(shape.collective) && row.keeps_order;
    prove_shape(row, shape);
  }
}

class Prove : public testing::TestWithParam<int> {};

// On how many hosts do ranks lie, and how? Only some counts, since there are many of both.
void prove_on_hosts(const Algorithm& row, Shape shape) {
  if (!row.uses_hosts) return;
  for (const topology::HostMap& hosts : unisono::test::host_maps(shape.ranks)) {
    shape.hosts = hosts;
    for (const std::int64_t count : {0, 1, shape.ranks + 2}) {
      if (count > 0 && row.collective == Collective::barrier) continue;
      shape.blocks = {};
      shape.count = count;
      for (const bool ordered : {false, true}) {
        if (ordered && !schedule::is_reduction(row.collective)) continue;
        shape.ordered = ordered;
        prove_shape(row, shape);
      }
    }
    prove_unequal_blocks(row, shape);
  }
}

TEST_P(Prove, RightInEveryLegalOrder) {
  const Algorithm& row = table()[static_cast<std::size_t>(GetParam())];
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    Shape shape{.collective = row.collective, .ranks = ranks};
    for (int root = 0; root < roots(shape); ++root) {
      shape.root = root;
      for (const std::int64_t count : counts(shape)) {
        shape.blocks = {};
        shape.count = count;
        shape.ordered = false;
        shape.exact = row.sums_exactly;
        prove_shape(row, shape);
        if (!schedule::is_reduction(shape.collective) || !row.keeps_order) continue;
        shape.ordered = true;
        prove_shape(row, shape);
      }
      prove_unequal_blocks(row, shape);
      prove_on_hosts(row, shape);
    }
    if (HasFailure()) return;
  }
}

std::string row_name(const testing::TestParamInfo<int>& info) {
  const Algorithm& row = table()[static_cast<std::size_t>(info.param)];
  std::string name =
      std::string(schedule::collective_name(row.collective)) + "_" + std::string(row.name);
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, Prove, testing::Range(0, static_cast<int>(table().size())),
                         row_name);

}  // namespace
}  // namespace unisono::algorithm::test::prove_test
