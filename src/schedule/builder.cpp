// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/builder.hpp"

#include "schedule/spares.hpp"

namespace unisono::schedule {

Builder::Builder(const Shape& shape, int rank, int ops_expected)
    : keeps_order_(!Spares::leave_out_order()),
      keeps_steps_(!Spares::leave_out_steps()),
      schedule_(Spares::take()) {
  schedule_.shape = shape;
  schedule_.rank = rank;
  const auto expected = static_cast<std::size_t>(ops_expected);
  if (!keeps_steps_) return;
  schedule_.ops.reserve(expected);
  if (keeps_order_) schedule_.after.reserve(expected * 2);
  schedule_.targets.reserve(expected);
}

Range Builder::scratch(std::int64_t count) {
  const Range range = schedule::scratch(schedule_.scratch_count, count);
  schedule_.scratch_count += count;
  return range;
}

OpId Builder::multicast(std::span<const Target> targets, Range source, After after) {
  Op& op = append(OpKind::multicast, after);
  op.left = source;
  op.first_target = static_cast<std::int32_t>(schedule_.targets.size());
  op.target_count = static_cast<std::int32_t>(targets.size());
  schedule_.targets.insert(schedule_.targets.end(), targets.begin(), targets.end());
  return last();
}

OpId Builder::sum(Range target, std::span<const Range> operands, After after) {
  if (!keeps_steps_) return kLeftOut;
  Op& op = append(OpKind::sum, after);
  op.target = target;
  op.first_operand = static_cast<std::int32_t>(schedule_.operands.size());
  op.operand_count = static_cast<std::int32_t>(operands.size());
  schedule_.operands.insert(schedule_.operands.end(), operands.begin(), operands.end());
  return last();
}

}  // namespace unisono::schedule
