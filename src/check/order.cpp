// SPDX-License-Identifier: BSD-3-Clause
#include "check/order.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/index.hpp"

namespace unisono::check {
namespace {

using base::index;

using schedule::OpKind;

void explain_deadlock(std::span<const Schedule> set, const Links& links, std::span<const OpId> next,
                      Report& report);

// For each rank, the index of its first op when all ops of the set are numbered consecutively.
std::vector<std::size_t> first_ops(std::span<const Schedule> set) {
  std::vector<std::size_t> first(set.size() + 1, 0);
  for (std::size_t r = 0; r < set.size(); ++r) first[r + 1] = first[r] + set[r].ops.size();
  return first;
}

}  // namespace

std::optional<std::vector<OpAt>> run_order(std::span<const Schedule> set, const Links& links,
                                           Report& report) {
  std::vector<OpAt> run;
  const std::size_t total = first_ops(set).back();
  run.reserve(total);
  std::vector<OpId> next(set.size(), 0);
  std::vector<SlotId> stuck_at(set.size(), -1);
  std::vector<int> ready(set.size());
  for (std::size_t r = 0; r < set.size(); ++r) ready[r] = static_cast<int>(set.size() - 1 - r);
  while (!ready.empty()) {
    const int rank = ready.back();
    ready.pop_back();
    const Schedule& schedule = set[index(rank)];
    OpId& at = next[index(rank)];
    stuck_at[index(rank)] = -1;
    for (; std::cmp_less(at, schedule.ops.size()); ++at) {
      const Op& op = schedule.ops[index(at)];
      if (op.kind == OpKind::wait) {
        const OpAt filler = links.filler[index(rank)][index(op.slot)];
        if (next[index(filler.rank)] <= filler.op) {
          stuck_at[index(rank)] = op.slot;
          break;
        }
      }
      run.push_back({rank, at});
      for (const auto& [peer, slot] : schedule.targets_of(op)) {
        if (stuck_at[index(peer)] == slot) {
          stuck_at[index(peer)] = -1;
          ready.push_back(peer);
        }
      }
    }
  }
  if (run.size() == total) return run;
  explain_deadlock(set, links, next, report);
  return std::nullopt;
}

BitMatrix order_by_predecessors(const Schedule& schedule) {
  const std::size_t ops = schedule.ops.size();
  BitMatrix before(ops, ops);
  for (std::size_t id = 0; id < ops; ++id) {
    for (const OpId a : schedule.after_of(schedule.ops[id])) {
      before.merge(id, index(a));
      before.set(id, index(a));
    }
  }
  return before;
}

BitMatrix order_by_messages(std::span<const Schedule> set, const Links& links,
                            std::span<const OpAt> run, int rank) {
  const auto first = first_ops(set);
  const std::size_t columns = set[index(rank)].ops.size();
  BitMatrix all(first.back(), columns);
  for (const auto& [r, id] : run) {
    const Schedule& schedule = set[index(r)];
    const Op& op = schedule.ops[index(id)];
    const std::size_t row = first[index(r)] + index(id);
    for (const OpId a : schedule.after_of(op)) {
      all.merge(row, first[index(r)] + index(a));
      if (r == rank) all.set(row, index(a));
    }
    if (op.kind != OpKind::wait) continue;
    const OpAt filler = links.filler[index(r)][index(op.slot)];
    all.merge(row, first[index(filler.rank)] + index(filler.op));
    const Op& send = set[index(filler.rank)].ops[index(filler.op)];
    if (filler.rank == rank && send.kind == OpKind::send) all.set(row, index(filler.op));
  }
  BitMatrix before(columns, columns);
  for (std::size_t b = 0; b < columns; ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      if (all.test(first[index(rank)] + b, a)) before.set(b, a);
    }
  }
  return before;
}

BitMatrix end_after_begin(std::span<const Schedule> set, const Links& links,
                          std::span<const OpAt> run) {
  const auto first = first_ops(set);
  BitMatrix known(first.back(), set.size());
  BitMatrix ends(set.size(), set.size());
  for (const auto& [r, id] : run) {
    const Schedule& schedule = set[index(r)];
    const Op& op = schedule.ops[index(id)];
    const std::size_t row = first[index(r)] + index(id);
    known.set(row, index(r));
    for (const OpId a : schedule.after_of(op)) known.merge(row, first[index(r)] + index(a));
    if (op.kind == OpKind::wait) {
      const OpAt filler = links.filler[index(r)][index(op.slot)];
      known.merge(row, first[index(filler.rank)] + index(filler.op));
    }
  }
  for (std::size_t r = 0; r < set.size(); ++r) {
    ends.set(r, r);
    for (std::size_t row = first[r]; row < first[r + 1]; ++row) {
      for (std::size_t s = 0; s < set.size(); ++s) {
        if (known.test(row, s)) ends.set(r, s);
      }
    }
  }
  return ends;
}

namespace {

// Every stuck rank waits for a send of another stuck rank, so following the waits leads into a
// cycle.
void explain_deadlock(std::span<const Schedule> set, const Links& links, std::span<const OpId> next,
                      Report& report) {
  const auto stuck = [&](int r) { return std::cmp_less(next[index(r)], set[index(r)].ops.size()); };
  const auto waits_for = [&](int r) {
    const Op& op = set[index(r)].ops[index(next[index(r)])];
    return links.filler[index(r)][index(op.slot)];
  };
  int rank = 0;
  while (!stuck(rank)) ++rank;
  for (std::size_t step = 0; step < set.size(); ++step) rank = waits_for(rank).rank;

  const int start = rank;
  std::string circle;
  do {
    const OpAt need = waits_for(rank);
    circle += fmt::format("{} rank {}, {}, which stands behind {} there",
                          circle.empty() ? "waits for" : ", which waits for", need.rank,
                          name_op(set[index(need.rank)], need.op),
                          name_op(set[index(need.rank)], next[index(need.rank)]));
    rank = need.rank;
  } while (rank != start);
  report.add(Rule::deadlock, start, next[index(start)], "a circle: " + circle);
}

}  // namespace
}  // namespace unisono::check
