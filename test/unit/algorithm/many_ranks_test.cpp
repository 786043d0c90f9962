// SPDX-License-Identifier: BSD-3-Clause
// Rows for any number of ranks whose peers follow no tree or cube are proved for more ranks than
// the others (prove_test.cpp): all up to 64, and some beyond.
#include <gtest/gtest.h>

#include <array>

#include "check/check.hpp"
#include "harness/scale.hpp"
#include "unit/algorithm/schedule_set.hpp"

namespace unisono::algorithm::test::many_ranks_test {
namespace {

constexpr std::array kNames = {std::string_view("circulant"), std::string_view("bine"),
                               std::string_view("kbruck"), std::string_view("pat")};

void prove_with(const Algorithm& row, int ranks) {
  Shape shape{.collective = row.collective, .ranks = ranks, .count = ranks + 3};
  if (schedule::has_blocks(row.collective)) shape.count = 2;
  if (schedule::is_rooted(row.collective)) shape.root = ranks / 3;
  const Parameters parameters = default_parameters(row, shape);
  if (!why_illegal(row, shape, parameters).empty()) return;
  for (const check::Violation& violation : check::prove(build_set(row, shape, parameters))) {
    ADD_FAILURE() << name_of(row, shape, parameters) << ": " << violation.message;
  }
}

TEST(ManyRanks, RightInEveryLegalOrder) {
  const int step = harness::kSanitized ? 16 : 1;
  int rows = 0;
  for (const Algorithm& row : table()) {
    if (std::ranges::find(kNames, row.name) == kNames.end()) continue;
    ++rows;
    for (int ranks = 17; ranks <= 64; ranks += step) prove_with(row, ranks);
    for (const int ranks : {65, 96, 129}) {
      if (!harness::kSanitized) prove_with(row, ranks);
    }
    if (HasFailure()) return;
  }
  EXPECT_GE(rows, 11);
}

}  // namespace
}  // namespace unisono::algorithm::test::many_ranks_test
