// SPDX-License-Identifier: BSD-3-Clause
#include "plan/bind/pulls.hpp"

#include <algorithm>

namespace unisono::plan {
namespace {

using schedule::Memory;
using schedule::Op;
using schedule::OpKind;
using schedule::Range;
using schedule::Schedule;

bool overlap(const Range& a, const Range& b) {
  return a.offset < b.offset + b.count && b.offset < a.offset + a.count;
}

// Whether `op` changes the contents of `source`, with separate buffers or in place.
bool overwrites(const std::optional<schedule::InPlace>& shared, const Op& op, const Range& source) {
  if (!schedule::writes_range(op)) return false;
  if (op.target.memory == source.memory && overlap(op.target, source)) return true;
  if (!shared || source.memory != Memory::input || op.target.memory != Memory::output) return false;
  // Elements of the input as elements of the output; those before it have negative numbers.
  const std::int64_t inside = shared->input - shared->output;
  Range placed = source;
  placed.offset += inside;
  if (!overlap(op.target, placed)) return false;
  // In place, a copy onto itself changes nothing.
  return op.kind != OpKind::copy || op.left.memory != Memory::input ||
         op.left.offset + inside != op.target.offset;
}

bool sends_on(const Schedule& schedule, schedule::SlotId slot) {
  return std::ranges::any_of(schedule.ops, [slot](const Op& op) {
    return (op.kind == OpKind::send || op.kind == OpKind::multicast) &&
           op.left.memory == Memory::slot && op.left.slot == slot;
  });
}

}  // namespace

bool stays(const Schedule& schedule, schedule::OpId send,
           const std::optional<schedule::InPlace>& shared) {
  const Range& source = schedule.ops[static_cast<std::size_t>(send)].left;
  if (source.memory != Memory::input && source.memory != Memory::output) return false;
  return overwriters(schedule, send, shared).empty();
}

std::vector<schedule::OpId> overwriters(const Schedule& schedule, schedule::OpId send,
                                        const std::optional<schedule::InPlace>& shared) {
  const Range& source = schedule.ops[static_cast<std::size_t>(send)].left;
  std::vector<schedule::OpId> found;
  for (schedule::OpId op = send; op < std::ssize(schedule.ops); ++op) {
    if (overwrites(shared, schedule.ops[static_cast<std::size_t>(op)], source)) found.push_back(op);
  }
  return found;
}

Pulls::Pulls(std::span<const Schedule> set, std::int64_t from_count) {
  for (const Schedule& schedule : set) {
    sent_.emplace_back(schedule.ops.size(), false);
    received_.emplace_back(schedule.slots.size(), false);
  }
  for (std::size_t r = 0; r < set.size(); ++r) {
    for (std::size_t i = 0; i < set[r].ops.size(); ++i) {
      const Op& op = set[r].ops[i];
      if (op.kind != OpKind::send && op.kind != OpKind::multicast) continue;
      const auto shared = schedule::in_place(set[r].shape, set[r].rank);
      if (op.left.count < from_count || !stays(set[r], static_cast<schedule::OpId>(i), shared)) {
        continue;
      }
      const auto targets = set[r].targets_of(op);
      const bool all = std::ranges::none_of(targets, [&](const schedule::Target& target) {
        return sends_on(set[static_cast<std::size_t>(target.peer)], target.slot);
      });
      if (!all) continue;
      any_ = sent_[r][i] = true;
      for (const schedule::Target& target : targets) {
        received_[static_cast<std::size_t>(target.peer)][static_cast<std::size_t>(target.slot)] =
            true;
      }
    }
  }
}

}  // namespace unisono::plan
