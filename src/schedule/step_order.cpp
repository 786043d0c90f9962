// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/step_order.hpp"

#include <algorithm>
#include <numeric>

#include "base/index.hpp"

namespace unisono::schedule {
namespace {

bool sends(const Op& op) { return op.kind == OpKind::send || op.kind == OpKind::multicast; }

// By op: whether it is a send, or a send depends on it.
std::vector<bool> needed_by_sends(const Schedule& schedule) {
  std::vector<bool> needed(schedule.ops.size(), false);
  for (std::size_t op = schedule.ops.size(); op-- > 0;) {
    if (sends(schedule.ops[op])) needed[op] = true;
    if (!needed[op]) continue;
    for (const OpId before : schedule.after_of(schedule.ops[op]))
      needed[base::index(before)] = true;
  }
  return needed;
}

// Ops before the first wait may stay there: they are done before any rank can help.
void put_own_work_last(const Schedule& schedule, std::vector<OpId>& ops) {
  const std::vector<bool> needed = needed_by_sends(schedule);
  const auto first_wait = std::ranges::find_if(
      ops, [&](OpId op) { return schedule.ops[base::index(op)].kind == OpKind::wait; });
  std::stable_partition(first_wait, ops.end(), [&](OpId op) { return needed[base::index(op)]; });
}

bool touches(const Schedule& schedule, const Op& op, Memory memory) {
  bool reads = false;
  for_each_read(schedule, op, [&](const Range& range) { reads = reads || range.memory == memory; });
  return reads || (writes_range(op) && op.target.memory == memory);
}

void find_helpable(const Schedule& schedule, StepOrder& order) {
  bool waited = false, input = false, output = false;
  for (std::size_t i = 0; i < order.ops.size(); ++i) {
    const Op& op = schedule.ops[base::index(order.ops[i])];
    waited = waited || op.kind == OpKind::wait;
    if (!waited) continue;
    input = input || touches(schedule, op, Memory::input);
    output = output || touches(schedule, op, Memory::output);
    if (!sends(op)) continue;
    order.helpable = i + 1;
    order.stages_input = input;
    order.stages_output = output;
  }
}

}  // namespace

StepOrder order_steps(const Schedule& schedule, bool helping) {
  StepOrder order;
  order.ops.resize(schedule.ops.size());
  std::iota(order.ops.begin(), order.ops.end(), 0);
  if (!helping) return order;
  put_own_work_last(schedule, order.ops);
  find_helpable(schedule, order);
  return order;
}

}  // namespace unisono::schedule
