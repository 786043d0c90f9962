// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/step_order.hpp"

#include <algorithm>
#include <numeric>
#include <ranges>

#include "base/index.hpp"

namespace unisono::schedule {
namespace {

bool sends(const Op& op) { return op.kind == OpKind::send || op.kind == OpKind::multicast; }

// By op: whether it is a send, or a send depends on it.
void find_needed_by_sends(const Schedule& schedule, std::vector<char>& needed) {
  needed.assign(schedule.ops.size(), 0);
  for (std::size_t op = schedule.ops.size(); op-- > 0;) {
    if (sends(schedule.ops[op])) needed[op] = 1;
    if (needed[op] == 0) continue;
    for (const OpId before : schedule.after_of(schedule.ops[op])) needed[base::index(before)] = 1;
  }
}

// Ops before the first wait may stay there: they are done before any rank can help.
void put_own_work_last(const Schedule& schedule, std::vector<OpId>& ops) {
  std::vector<char> needed;
  find_needed_by_sends(schedule, needed);
  const auto first_wait = std::ranges::find_if(
      ops, [&](OpId op) { return schedule.ops[base::index(op)].kind == OpKind::wait; });
  std::stable_partition(first_wait, ops.end(),
                        [&](OpId op) { return needed[base::index(op)] != 0; });
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

// Ops that sends need come before the others, and the last of them is a send. So they are the
// helpable ones, from the first wait among them on. input, output: whether it does not matter if
// these are staged.
Helpable find_helpable(const Schedule& schedule, std::vector<char>& needed, bool input,
                       bool output) {
  // Most ranks of a tree send once, or never: then there is no wait before the last send.
  const auto last_send = std::ranges::find_if(std::views::reverse(schedule.ops), sends).base();
  const auto waits = [](const Op& op) { return op.kind == OpKind::wait; };
  if (std::find_if(schedule.ops.begin(), last_send, waits) == last_send) return {};
  needed.assign(schedule.ops.size(), 0);
  Helpable found;
  // From here on they say whether the needed ops touch them.
  for (auto i = static_cast<std::size_t>(last_send - schedule.ops.begin()); i-- > 0;) {
    const Op& op = schedule.ops[i];
    if (needed[i] == 0 && !sends(op)) continue;
    for (const OpId before : schedule.after_of(op)) needed[base::index(before)] = 1;
    if (op.kind == OpKind::wait) {
      found = {.any = true, .stages_input = input, .stages_output = output};
      if (input && output) break;
    } else {
      input = input || touches(schedule, op, Memory::input);
      output = output || touches(schedule, op, Memory::output);
    }
  }
  return found;
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

Helpable helpable_steps(const Schedule& schedule, std::vector<char>& needed) {
  return find_helpable(schedule, needed, false, false);
}

std::int64_t staged_elements(const Schedule& schedule, std::vector<char>& needed) {
  const std::int64_t input = input_count(schedule.shape, schedule.rank);
  const std::int64_t output = output_count(schedule.shape, schedule.rank);
  const Helpable steps = find_helpable(schedule, needed, input == 0, output == 0);
  return (steps.stages_input ? input : 0) + (steps.stages_output ? output : 0);
}

}  // namespace unisono::schedule
