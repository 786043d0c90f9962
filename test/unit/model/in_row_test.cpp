// SPDX-License-Identifier: BSD-3-Clause
// Calls in a row: replayed from a tape, their price is that of walks through the schedules, to the
// last bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/index.hpp"
#include "model/clock.hpp"
#include "model/default_machine.hpp"
#include "model/in_row/bound_ranks.hpp"
#include "model/price.hpp"
#include "topology/host_map.hpp"

namespace unisono::model::in_row_test {
namespace {

using algorithm::Algorithm;
using schedule::Op;
using schedule::OpKind;
using schedule::Schedule;
using schedule::Shape;
using schedule::Target;

// Each call is executed by the clocks. A rank that waits is tried again after all others.
class Walks {
 public:
  Walks(Costs& costs, const std::vector<Schedule>& set)
      : set_(set), clock_(costs), ranks_(set.size()), arrivals_(set.size()) {
    for (std::size_t r = 0; r < set.size(); ++r) clock_.begin(ranks_[r], set[r]);
    walk();
  }

  double in_row_ns(const Calls& calls) {
    double alone_ns = 0;
    for (const auto& rank : ranks_) alone_ns = std::max(alone_ns, rank.now.ns);
    for (std::size_t r = 0; r < set_.size() && calls.segments > 1; ++r) {
      clock_.begin_again(ranks_[r], set_[r]);
    }
    if (calls.segments > 1) walk();
    call(calls);
    std::vector<double> before;
    for (const auto& rank : ranks_) before.push_back(rank.now.ns);
    const std::vector<double> busy_before = clock_.busy();
    call(calls);
    call(calls);
    Clock<Moment>::InRow row{
        .ns = alone_ns / calls.slot_indexes, .busy = clock_.busy(), .turns = {}};
    for (std::size_t r = 0; r < set_.size(); ++r) {
      row.ns = std::max(row.ns, (ranks_[r].now.ns - before[r]) / 2);
    }
    const std::vector<bool> bound = find_bound(set_);
    row.overlaps = std::ranges::count(bound, true) == 0;
    row.turns.resize(row.busy.size());
    for (std::size_t set = 0; set < row.busy.size(); ++set) {
      row.busy[set] = (row.busy[set] - busy_before[set]) / 2;
    }
    for (std::size_t r = 0; r < set_.size() && !row.turns.empty(); ++r) {
      row.turns[base::index(clock_.core_set(static_cast<int>(r)))] +=
          bound[r] ? 1.0 : 1.0 / calls.slot_indexes;
    }
    return clock_.finish_in_row(row) * static_cast<double>(calls.segments);
  }

 private:
  void call(const Calls& calls) {
    for (std::size_t r = 0; r < set_.size(); ++r) {
      clock_.begin_call(ranks_[r], set_[r], calls.segments);
    }
    walk();
  }

  void walk() {
    for (std::size_t r = 0; r < set_.size(); ++r) {
      arrivals_[r].assign(set_[r].slots.size(), std::nullopt);
    }
    std::vector<int> order(set_.size());
    for (std::size_t r = 0; r < order.size(); ++r) order[r] = static_cast<int>(r);
    // The order of price.cpp, which the sums of work depend on: the rank that was woken last.
    while (!order.empty()) {
      const int rank = order.back();
      order.pop_back();
      advance(base::index(rank), order);
    }
  }

  void advance(std::size_t r, std::vector<int>& order) {
    const Schedule& schedule = set_[r];
    auto& rank = ranks_[r];
    for (rank.awaited = -1; rank.next < schedule.ops.size(); ++rank.next) {
      const Op& op = schedule.ops[rank.next];
      if (op.kind == OpKind::wait) {
        const auto& arrival = arrivals_[r][base::index(op.slot)];
        if (!arrival) {
          rank.awaited = op.slot;
          return;
        }
        clock_.wait(schedule, op, rank, *arrival);
      } else if (schedule::writes_range(op)) {
        clock_.compute(schedule, op, rank);
      } else {
        clock_.send(schedule, op, rank, [&](const Target& target, const Moment& at) {
          const auto peer = base::index(target.peer);
          arrivals_[peer][base::index(target.slot)] = at;
          if (ranks_[peer].awaited == target.slot) order.push_back(target.peer);
          return std::size_t{0};
        });
      }
    }
  }

  const std::vector<Schedule>& set_;
  Clock<Moment> clock_;
  std::vector<RankClock<Moment>> ranks_;
  std::vector<std::vector<std::optional<Moment>>> arrivals_;
};

struct Case {
  Engine engine;
  int cores;                    // of a host
  std::vector<int> hosts = {};  // by rank; none: one
  bool multicast = true;        // between hosts
};

std::vector<Case> cases_of(int ranks) {
  std::vector<int> pairs, apart;
  for (int r = 0; r < ranks; ++r) {
    pairs.push_back(r / 2);
    apart.push_back(r);
  }
  return {{Engine::inline_, 64},       {Engine::inline_, 2},
          {Engine::helping, 2},        {Engine::inline_, 2, pairs},
          {Engine::inline_, 1, pairs}, {Engine::inline_, 2, pairs, false},
          {Engine::inline_, 2, apart}};
}

void compare(const Algorithm& row, const Shape& shape, const Case& each) {
  const auto parameters = algorithm::default_parameters(row, shape);
  if (!algorithm::is_legal(row, shape, parameters)) return;
  std::vector<Schedule> set;
  for (int r = 0; r < shape.ranks; ++r) set.push_back(row.build(shape, parameters, r));
  Work work{.engine = each.engine,
            .type = arith::Type::float64,
            .staged_multicast = each.cores != 2,
            .multicast_between_hosts = each.multicast,
            .cores = each.cores};
  if (schedule::is_reduction(shape.collective)) work.op = arith::Operator::sum;
  for (const std::int64_t segments : {1, 3}) {
    SCOPED_TRACE(testing::Message()
                 << row.name << ", " << shape.ranks << " ranks, " << shape.count << " elements, "
                 << each.cores << " cores, " << segments << " segments");
    const Calls calls{.segments = segments, .slot_indexes = 64};
    Costs costs(default_machine(), work, shape);
    const double walked = Walks(costs, set).in_row_ns(calls);
    EXPECT_GT(walked, 0);
    EXPECT_EQ(price(set, default_machine(), work, calls).in_row_ns, walked);
  }
}

TEST(CallsInARow, CostWhatWalksSay) {
  for (const Algorithm& row : algorithm::table()) {
    for (const int ranks : {2, 5, 8}) {
      for (const Case& each : cases_of(ranks)) {
        for (const std::int64_t count : {3, 5000}) {
          Shape shape{.collective = row.collective, .ranks = ranks, .count = count};
          if (row.collective == schedule::Collective::barrier) shape.count = 0;
          if (schedule::is_rooted(row.collective)) shape.root = ranks / 2;
          if (!each.hosts.empty()) shape.hosts = topology::HostMap::of_labels(each.hosts);
          shape.exact = row.sums_exactly;
          compare(row, shape, each);
        }
      }
    }
  }
}

}  // namespace
}  // namespace unisono::model::in_row_test
