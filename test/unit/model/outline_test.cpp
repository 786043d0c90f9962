// SPDX-License-Identifier: BSD-3-Clause
// The price of an outlined set: that of its schedules, to the last bit.
#include "model/outline/outline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/index.hpp"
#include "model/default_machine.hpp"
#include "model/price.hpp"
#include "schedule/builder.hpp"

namespace unisono::model::outline_test {
namespace {

using algorithm::Algorithm;
using schedule::Schedule;
using schedule::Shape;

struct Case {
  Engine engine;
  int cores;
};
constexpr Case kCases[] = {
    {Engine::inline_, 64}, {Engine::inline_, 2}, {Engine::helping, 2}, {Engine::helping, 5}};

Work work_of(const Case& each, const Shape& shape) {
  Work work{.engine = each.engine,
            .type = arith::Type::float64,
            .staged_multicast = each.cores != 2,
            .cores = each.cores};
  if (schedule::is_reduction(shape.collective)) work.op = arith::Operator::sum;
  return work;
}

// visit(row, shape, set) for each row of the table, with some numbers of ranks and elements.
template <class Visit>
void for_each_set(const Visit& visit) {
  for (const Algorithm& row : algorithm::table()) {
    for (const int ranks : {2, 5, 8}) {
      for (const std::int64_t count : {0, 3, 5000}) {
        Shape shape{.collective = row.collective, .ranks = ranks, .count = count};
        if (row.collective == schedule::Collective::barrier) shape.count = 0;
        if (schedule::is_rooted(row.collective)) shape.root = ranks / 2;
        shape.exact = row.sums_exactly;
        const auto parameters = algorithm::default_parameters(row, shape);
        if (!algorithm::is_legal(row, shape, parameters)) continue;
        std::vector<Schedule> set;
        for (int r = 0; r < ranks; ++r) set.push_back(row.build(shape, parameters, r));
        visit(row, shape, set);
      }
    }
  }
}

TEST(Outline, HasThePriceOfItsSchedules) {
  int compared = 0;
  for_each_set([&](const Algorithm& row, const Shape& shape, const std::vector<Schedule>& set) {
    for (const Case& each : kCases) {
      const Work work = work_of(each, shape);
      Outline outline;
      for (const Schedule& one : set) outline.add(one, each.engine == Engine::helping);
      Pricer pricer(default_machine(), work, shape);
      for (const std::int64_t segments : {1, 3}) {
        SCOPED_TRACE(testing::Message() << row.name << ", " << shape.ranks << " ranks, "
                                        << shape.count << " elements, " << segments << " segments");
        const Calls calls{.segments = segments};
        const double ns = price(set, default_machine(), work, calls).ns;
        EXPECT_EQ(pricer.ns_below(kAnyPrice, outline, calls), ns);
        EXPECT_EQ(pricer.ns_below(std::nextafter(ns, kAnyPrice), outline, calls), ns);
        EXPECT_EQ(pricer.ns_below(ns, outline, calls), std::nullopt);
        EXPECT_EQ(pricer.ns_below(ns / 2, outline, calls), std::nullopt);
        ++compared;
      }
    }
  });
  EXPECT_GT(compared, 2000);
}

TEST(Outline, OfRowsThatRotateNeedsOneSchedule) {
  int compared = 0;
  for_each_set([&](const Algorithm& row, const Shape& shape, const std::vector<Schedule>& set) {
    if (!row.rotates) return;
    const Work work = work_of({Engine::helping, 2}, shape);
    Outline outline;
    outline.add(set.front(), true);
    outline.rotate(shape.ranks - 1);
    ASSERT_EQ(outline.ranks(), shape.ranks);
    EXPECT_EQ(Pricer(default_machine(), work, shape).ns_below(kAnyPrice, outline, {}),
              price(set, default_machine(), work).ns)
        << row.name << ", " << shape.ranks << " ranks, " << shape.count << " elements";
    ++compared;
  });
  EXPECT_GT(compared, 10);
}

TEST(Outline, OfRowsThatRepeatNeedsThatOfAPiece) {
  int rows = 0;
  for (const Algorithm& row : algorithm::table()) {
    if (!row.repeats) continue;
    ++rows;
    for (const int ranks : {2, 3, 5, 8, 13}) {
      for (const std::int64_t count : {4, 12, 1001}) {
        for (const int pieces : {2, 3, 4}) {
          SCOPED_TRACE(testing::Message() << row.name << ", " << ranks << " ranks, " << count
                                          << " elements in " << pieces << " pieces");
          Shape shape{.collective = row.collective, .ranks = ranks, .root = ranks / 2};
          const auto set_of = [&](std::int64_t elements, int in_pieces) {
            shape.count = elements;
            auto parameters = algorithm::default_parameters(row, shape);
            parameters.values[0] = in_pieces;
            std::vector<Schedule> set;
            for (int r = 0; r < ranks; ++r) set.push_back(row.build(shape, parameters, r));
            return set;
          };
          const auto outline_of = [](const std::vector<Schedule>& set) {
            Outline outline;
            for (const Schedule& one : set) outline.add(one, true);
            return outline;
          };
          const Outline longer = outline_of(set_of(count / pieces + 1, 1));
          const Outline shorter = outline_of(set_of(count / pieces, 1));
          const auto longer_ones = static_cast<int>(count % pieces);
          Outline outline;
          outline.repeat(longer, longer_ones, shorter, pieces - longer_ones);
          const auto set = set_of(count, pieces);
          const Outline whole = outline_of(set);
          ASSERT_EQ(outline.ranks(), ranks);
          EXPECT_EQ(outline.slots(), whole.slots());
          for (int r = 0; r < ranks; ++r) {
            ASSERT_EQ(outline.steps_of(r).size(), whole.steps_of(r).size());
            EXPECT_EQ(outline.first_slot_of(r), whole.first_slot_of(r));
            for (std::size_t i = 0; i < whole.steps_of(r).size(); ++i) {
              const Outline::Step &a = outline.steps_of(r)[i], &b = whole.steps_of(r)[i];
              EXPECT_EQ(a.kind, b.kind);
              EXPECT_EQ(a.slot, b.slot);
              EXPECT_EQ(a.peer, b.peer);
              EXPECT_EQ(outline.sizes()[base::index(a.size)], whole.sizes()[base::index(b.size)]);
            }
          }
          const Work work = work_of({Engine::helping, 2}, shape);
          EXPECT_EQ(Pricer(default_machine(), work, shape).ns_below(kAnyPrice, outline, {}),
                    price(set, default_machine(), work).ns);
        }
      }
    }
  }
  EXPECT_EQ(rows, 3);
}

// A segment's schedules are those of the call, with shorter parts.
TEST(Outline, ScaledHasThePriceOfSchedulesOfThatLength) {
  constexpr std::int64_t kFrom = 1 << 14, kTo = 3 << 10;
  int scaled = 0;
  for (const Algorithm& row : algorithm::table()) {
    for (const int ranks : {2, 6, 8}) {
      Shape shape{.collective = row.collective, .ranks = ranks, .count = kFrom};
      if (row.collective == schedule::Collective::barrier) continue;
      shape.exact = row.sums_exactly;
      const auto parameters = algorithm::default_parameters(row, shape);
      if (!algorithm::is_legal(row, shape, parameters)) continue;
      const auto outline_of = [&](std::int64_t count) {
        Shape of = shape;
        of.count = count;
        Outline outline;
        for (int r = 0; r < ranks; ++r) outline.add(row.build(of, parameters, r), true);
        return outline;
      };
      Outline outline = outline_of(kFrom);
      if (!outline.scale(kFrom, kTo)) continue;
      Pricer pricer(default_machine(), work_of({Engine::helping, 2}, shape), shape);
      EXPECT_EQ(pricer.ns_below(kAnyPrice, outline, {}),
                pricer.ns_below(kAnyPrice, outline_of(kTo), {}))
          << row.name << ", " << ranks << " ranks";
      ++scaled;
    }
  }
  EXPECT_GT(scaled, 100);
}

TEST(Outline, IsNotScaledToParts) {
  const Shape shape{.collective = schedule::Collective::broadcast, .ranks = 2, .count = 10};
  schedule::Builder builder(shape, 0);
  builder.send(1, 0, schedule::input(0, 10));
  builder.send(1, 1, schedule::input(0, 5));
  Outline outline;
  outline.add(std::move(builder).take(), false);
  const std::vector<std::int64_t> before(outline.sizes().begin(), outline.sizes().end());
  EXPECT_FALSE(outline.scale(10, 5));  // 5 would be 2.5
  EXPECT_EQ(before, std::vector<std::int64_t>(outline.sizes().begin(), outline.sizes().end()));
  EXPECT_TRUE(outline.scale(5, 15));
  EXPECT_EQ(std::ranges::max(outline.sizes()), 30);
}

// Shared cores need the time for the work of all ranks, and helped ranks their turns.
TEST(Outline, WorkOfRanksIsALowerBoundOfThePrice) {
  int compared = 0, apart = 0;
  for_each_set([&](const Algorithm& row, const Shape& shape, const std::vector<Schedule>& set) {
    for (const Case& each : kCases) {
      SCOPED_TRACE(testing::Message()
                   << row.name << ", " << shape.ranks << " ranks, " << shape.count << " elements");
      Outline outline;
      Pricer pricer(default_machine(), work_of(each, shape), shape);
      EXPECT_EQ(pricer.share_all_cores(), shape.ranks > each.cores);
      double work_ns = 0, own_ns = 0;
      for (const Schedule& one : set) {
        outline.add(one, each.engine == Engine::helping);
        const double ns = pricer.work_of(outline, one.rank, {});
        work_ns += ns;
        own_ns = std::max(own_ns, ns);
      }
      const double ns = *pricer.ns_below(kAnyPrice, outline, {});
      if (!pricer.share_all_cores()) {
        ++apart;
        EXPECT_LE(pricer.least_ns_of_work(0, own_ns, {}), ns);
        continue;
      }
      ++compared;
      const double least_ns = pricer.least_ns_of_work(work_ns, own_ns, {});
      EXPECT_LE(least_ns, ns);
      EXPECT_GT(least_ns, 0.99 * work_ns / each.cores);
      if (each.engine != Engine::helping) continue;
      const double turns_ns = default_machine().hand_over->ns() * shape.ranks / each.cores;
      EXPECT_GT(least_ns, 0.99 * (work_ns / each.cores + turns_ns));
      const Calls thrice{.segments = 3};
      EXPECT_GT(pricer.least_ns_of_work(work_ns, own_ns, thrice), 2.9 * turns_ns);
      EXPECT_LE(pricer.least_ns_of_work(work_ns, own_ns, thrice),
                *pricer.ns_below(kAnyPrice, outline, thrice));
    }
  });
  EXPECT_GT(compared, 500);
  EXPECT_GT(apart, 500);
}

// A segment is a part of the call, with sizes that are rounded down.
TEST(Outline, WorkOfASegmentIsThatOfItsSizes) {
  const Shape shape{.collective = schedule::Collective::broadcast, .ranks = 2, .count = 70};
  const auto outline_of = [&](std::int64_t elements) {
    schedule::Builder builder(shape, 0);
    builder.send(1, 0, schedule::input(0, elements));
    Outline outline;
    outline.add(std::move(builder).take(), false);
    return outline;
  };
  const Outline whole = outline_of(70), part = outline_of(23);
  Pricer pricer(default_machine(), work_of({Engine::inline_, 2}, shape), shape);
  EXPECT_EQ(pricer.work_of(whole, 0, {.from = 70, .to = 23}), pricer.work_of(part, 0, {}));
  EXPECT_EQ(pricer.work_of(whole, 0, {.from = 210, .to = 70}), pricer.work_of(part, 0, {}));
  EXPECT_GT(pricer.work_of(whole, 0, {}), pricer.work_of(part, 0, {}));
}

// A multicast has its targets elsewhere, which have to move with it.
TEST(Outline, RotatesTheTargetsOfMulticasts) {
  const Shape shape{.collective = schedule::Collective::allgather, .ranks = 3, .count = 2};
  schedule::Builder builder(shape, 0);
  builder.multicast(std::array{schedule::Target{1, 0}, schedule::Target{2, 1}},
                    schedule::input(0, 2));
  Outline outline;
  outline.add(std::move(builder).take(), false);
  outline.rotate(2);
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_EQ(outline.steps_of(rank).size(), 1U);
    const auto targets = outline.targets_of(outline.steps_of(rank).front());
    ASSERT_EQ(targets.size(), 2U);
    EXPECT_EQ(targets[0], (schedule::Target{(rank + 1) % 3, 0}));
    EXPECT_EQ(targets[1], (schedule::Target{(rank + 2) % 3, 1}));
  }
}

}  // namespace
}  // namespace unisono::model::outline_test
