// SPDX-License-Identifier: BSD-3-Clause
// Copy once, send many: what an algorithm sends to several ranks is written once for all of them
// wherever the transport has multicast, on either engine, and not at all where its receivers read
// it from the sender's buffer. Where there is no multicast, a copy for each is counted: the counter
// sees them.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "algorithm/algorithm.hpp"
#include "cross/combination.hpp"
#include "cross/trial.hpp"

namespace unisono::test::staging_test {
namespace {

using algorithm::Algorithm;
using schedule::Collective;
using schedule::Shape;

engine::Counters counted(World& world) {
  engine::Counters all;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    const engine::Counters& one = world.at(rank).statistics().engine;
    all.multicasts += one.multicasts;
    all.stagings += one.stagings;
  }
  return all;
}

// Totals of all ranks' schedules: multicasts to several ranks, and their receivers.
struct Expected {
  std::int64_t multicasts = 0, receivers = 0;
};

Expected expected_of(const Algorithm& row, const Shape& shape,
                     const algorithm::Parameters& parameters) {
  Expected all;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const auto schedule = *algorithm::build(row, shape, parameters, rank);
    for (const schedule::Op& op : schedule.ops) {
      if (op.kind != schedule::OpKind::multicast || op.target_count < 2) continue;
      ++all.multicasts;
      all.receivers += op.target_count;
    }
  }
  return all;
}

class Staging : public testing::TestWithParam<Combination> {};

TEST_P(Staging, IsOnceForAMessageToSeveralRanks) {
  const bool has_multicast = std::strcmp(GetParam().network, "virtual") != 0;
  const bool pulls = std::strcmp(GetParam().network, "pull") == 0;
  const auto world = make_world(GetParam(), 5);
  Expected seen;
  std::int64_t copies = 0;
  for (const Algorithm& row : algorithm::table()) {
    Shape shape{.collective = row.collective, .ranks = 5};
    const auto parameters = algorithm::default_parameters(row, shape);
    if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
    shape.count = row.collective == Collective::barrier ? 0 : 100;
    SCOPED_TRACE(std::string(schedule::collective_name(row.collective)) + " " +
                 std::string(row.name));
    const Expected expected = expected_of(row, shape, parameters);
    world->override_with(row, parameters);
    const engine::Counters before = counted(*world);
    Trial trial(shape, material(arith::Type::int64, arith::Operator::sum), {});
    ASSERT_NO_FATAL_FAILURE(trial.run(*world));
    const engine::Counters after = counted(*world);
    const std::int64_t stagings = after.stagings - before.stagings;
    EXPECT_EQ(after.multicasts - before.multicasts, expected.multicasts);
    if (pulls) {
      EXPECT_LE(stagings, expected.multicasts);
    } else {
      EXPECT_EQ(stagings, has_multicast ? expected.multicasts : expected.receivers);
    }
    seen.multicasts += expected.multicasts;
    seen.receivers += expected.receivers;
    copies += stagings;
  }
  EXPECT_GT(seen.multicasts, 20);
  EXPECT_GT(seen.receivers, 2 * seen.multicasts) << "else one copy would not differ from several";
  if (pulls) {
    EXPECT_LT(copies, seen.multicasts) << "nothing was read from its sender's buffer";
  }
}

INSTANTIATE_TEST_SUITE_P(All, Staging, testing::ValuesIn(kCombinations), combination_name);

}  // namespace
}  // namespace unisono::test::staging_test
