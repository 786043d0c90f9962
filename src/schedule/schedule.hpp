// SPDX-License-Identifier: BSD-3-Clause
// Schedule: one rank's program for one shape. The order of its ops is one in which they may be
// executed one after another (predecessors come first). The explicit predecessors define which
// other orders are allowed. A value: comparable, printable (text.hpp), checkable (check/). Any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/op.hpp"
#include "schedule/shape.hpp"

namespace unisono::schedule {

// A slot: which peer fills it, and how many elements it holds.
struct Slot {
  std::int32_t source = -1;
  std::int64_t count = 0;

  bool operator==(const Slot&) const = default;
};

struct Schedule {
  Shape shape;
  std::int32_t rank = 0;
  std::int64_t scratch_count = 0;
  std::vector<Slot> slots;
  std::vector<Op> ops;
  std::vector<OpId> after;      // pool of predecessors
  std::vector<Target> targets;  // pool of send and multicast targets
  std::vector<Range> operands;  // pool of those of sums

  std::span<const OpId> after_of(const Op& op) const {
    return {after.data() + op.first_after, static_cast<std::size_t>(op.after_count)};
  }
  std::span<const Target> targets_of(const Op& op) const {
    return {targets.data() + op.first_target, static_cast<std::size_t>(op.target_count)};
  }
  std::span<const Range> operands_of(const Op& op) const {
    return {operands.data() + op.first_operand, static_cast<std::size_t>(op.operand_count)};
  }
};

// visit(range) for each range that an op reads.
template <class Visit>
void for_each_read(const Schedule& schedule, const Op& op, const Visit& visit) {
  switch (op.kind) {
    case OpKind::wait:
      return;
    case OpKind::send:
    case OpKind::multicast:
    case OpKind::copy:
      visit(op.left);
      return;
    case OpKind::reduce:
      visit(op.left);
      visit(op.right);
      return;
    case OpKind::sum:
      for (const Range& operand : schedule.operands_of(op)) visit(operand);
      return;
  }
}

// Equal programs; the layout of the pools does not count.
bool operator==(const Schedule& a, const Schedule& b);

}  // namespace unisono::schedule
