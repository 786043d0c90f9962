// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/builder.hpp"

#include "base/check.hpp"
#include "schedule/spares.hpp"

namespace unisono::schedule {

Builder::Builder(const Shape& shape, int rank, int ops_expected) : schedule_(Spares::take()) {
  schedule_.shape = shape;
  schedule_.rank = rank;
  const auto expected = static_cast<std::size_t>(ops_expected);
  schedule_.ops.reserve(expected);
  schedule_.after.reserve(expected * 2);
  schedule_.targets.reserve(expected);
}

SlotId Builder::slot(int source, std::int64_t count) {
  schedule_.slots.push_back({source, count});
  return static_cast<SlotId>(schedule_.slots.size() - 1);
}

Range Builder::scratch(std::int64_t count) {
  const Range range = schedule::scratch(schedule_.scratch_count, count);
  schedule_.scratch_count += count;
  return range;
}

OpId Builder::send(int peer, SlotId peer_slot, Range source, After after) {
  Op& op = append(OpKind::send, after);
  op.left = source;
  op.first_target = static_cast<std::int32_t>(schedule_.targets.size());
  op.target_count = 1;
  schedule_.targets.push_back({peer, peer_slot});
  return last();
}

OpId Builder::multicast(std::span<const Target> targets, Range source, After after) {
  Op& op = append(OpKind::multicast, after);
  op.left = source;
  op.first_target = static_cast<std::int32_t>(schedule_.targets.size());
  op.target_count = static_cast<std::int32_t>(targets.size());
  schedule_.targets.insert(schedule_.targets.end(), targets.begin(), targets.end());
  return last();
}

OpId Builder::wait(SlotId slot, After after) {
  Op& op = append(OpKind::wait, after);
  op.slot = slot;
  return last();
}

OpId Builder::reduce(Range target, Range left, Range right, After after) {
  Op& op = append(OpKind::reduce, after);
  op.target = target;
  op.left = left;
  op.right = right;
  return last();
}

OpId Builder::copy(Range target, Range source, After after) {
  Op& op = append(OpKind::copy, after);
  op.target = target;
  op.left = source;
  return last();
}

OpId Builder::sum(Range target, std::span<const Range> operands, After after) {
  Op& op = append(OpKind::sum, after);
  op.target = target;
  op.first_operand = static_cast<std::int32_t>(schedule_.operands.size());
  op.operand_count = static_cast<std::int32_t>(operands.size());
  schedule_.operands.insert(schedule_.operands.end(), operands.begin(), operands.end());
  return last();
}

void Builder::also_after(OpId predecessor) {
  if (predecessor == kNone) return;
  Op& op = schedule_.ops.back();
  schedule_.after.push_back(predecessor);
  ++op.after_count;
}

void Builder::also_to(Target target) {
  schedule_.targets.push_back(target);
  ++schedule_.ops.back().target_count;
}

Range Builder::of(SlotId slot) const {
  UNISONO_CHECK(slot >= 0 && static_cast<std::size_t>(slot) < schedule_.slots.size(),
                "a slot that was never made");
  return slot_range(slot, 0, schedule_.slots[static_cast<std::size_t>(slot)].count);
}

Op& Builder::append(OpKind kind, After after) {
  Op& op = schedule_.ops.emplace_back();
  op.kind = kind;
  op.first_after = static_cast<std::int32_t>(schedule_.after.size());
  for (const OpId predecessor : after) {
    if (predecessor == kNone) continue;
    schedule_.after.push_back(predecessor);
    ++op.after_count;
  }
  return op;
}

}  // namespace unisono::schedule
