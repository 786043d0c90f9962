// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/text.hpp"

#include <fmt/format.h>

#include <iterator>

namespace unisono::schedule {
namespace {

std::string print_head(const Schedule& schedule);
std::string print_blocks(const Shape& shape);
void append_after(std::string& text, const Schedule& schedule, const Op& op);

bool in_pool(std::int32_t first, std::int32_t count, std::size_t pool) {
  return first >= 0 && count >= 0 && static_cast<std::size_t>(std::int64_t{first} + count) <= pool;
}

}  // namespace

std::string print(const Schedule& schedule) {
  std::string text = print_head(schedule);
  const auto out = std::back_inserter(text);
  if (schedule.scratch_count != 0) fmt::format_to(out, "scratch {}\n", schedule.scratch_count);
  for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
    const Slot& slot = schedule.slots[i];
    fmt::format_to(out, "slot {} from {} count {}\n", i, slot.source, slot.count);
  }
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    fmt::format_to(out, "op {} {}", i, print_op(schedule, static_cast<OpId>(i)));
    append_after(text, schedule, schedule.ops[i]);
    text += '\n';
  }
  return text;
}

std::string print_counts(const Shape& shape) {
  return shape.blocks.given() ? print_blocks(shape) : fmt::format("count {}", shape.count);
}

std::string print_hosts(const Shape& shape) {
  if (!shape.hosts.given()) return {};
  std::string text = " hosts";
  for (int rank = 0; rank < shape.hosts.ranks(); ++rank) {
    fmt::format_to(std::back_inserter(text), " {}", shape.hosts.of(rank));
  }
  return text;
}

std::string print(const std::vector<Schedule>& set) {
  std::string text;
  for (const Schedule& schedule : set) {
    if (!text.empty()) text += '\n';
    text += print(schedule);
  }
  return text;
}

std::string print_op(const Schedule& schedule, OpId id) {
  const Op& op = schedule.ops[static_cast<std::size_t>(id)];
  switch (op.kind) {
    case OpKind::send:
    case OpKind::multicast: {
      std::string text = op.kind == OpKind::send ? "send " : "multicast ";
      text += print_range(op.left);
      if (!in_pool(op.first_target, op.target_count, schedule.targets.size())) return text;
      std::string_view before = " to ";
      for (const auto& [peer, slot] : schedule.targets_of(op)) {
        text += fmt::format("{}{} slot {}", before, peer, slot);
        before = ", ";
      }
      return text;
    }
    case OpKind::wait:
      return fmt::format("wait slot {}", op.slot);
    case OpKind::reduce:
      return fmt::format("reduce {} = {} . {}", print_range(op.target), print_range(op.left),
                         print_range(op.right));
    case OpKind::copy:
      return fmt::format("copy {} = {}", print_range(op.target), print_range(op.left));
    case OpKind::sum: {
      std::string text = "sum " + print_range(op.target);
      if (!in_pool(op.first_operand, op.operand_count, schedule.operands.size())) return text;
      std::string_view before = " = ";
      for (const Range& operand : schedule.operands_of(op)) {
        text += fmt::format("{}{}", before, print_range(operand));
        before = " . ";
      }
      return text;
    }
  }
  return "unknown";
}

std::string print_range(const Range& range) {
  std::string_view name = "unknown";
  switch (range.memory) {
    case Memory::input:
      name = "input";
      break;
    case Memory::output:
      name = "output";
      break;
    case Memory::scratch:
      name = "scratch";
      break;
    case Memory::slot:
      name = "slot";
      break;
  }
  // Unsigned, because a malformed range may overflow.
  const auto end = static_cast<std::int64_t>(static_cast<std::uint64_t>(range.offset) +
                                             static_cast<std::uint64_t>(range.count));
  if (range.memory == Memory::slot) {
    return fmt::format("slot {}[{}:{}]", range.slot, range.offset, end);
  }
  return fmt::format("{}[{}:{}]", name, range.offset, end);
}

namespace {

std::string print_head(const Schedule& schedule) {
  const Shape& shape = schedule.shape;
  std::string text =
      fmt::format("schedule {} ranks {} rank {} {}", collective_name(shape.collective), shape.ranks,
                  schedule.rank, print_counts(shape));
  if (is_rooted(shape.collective)) text += fmt::format(" root {}", shape.root);
  if (shape.ordered) text += " ordered";
  if (shape.exact) text += " exact";
  if (shape.by_one) text += " by_one";
  return text + print_hosts(shape) + '\n';
}

// "blocks 3 0 2", for pairs a list for each sender: "blocks 1 2, 3 4".
std::string print_blocks(const Shape& shape) {
  const Blocks& blocks = shape.blocks;
  const auto out = [](std::string& text) { return std::back_inserter(text); };
  std::string text = "blocks";
  for (int from = 0; from < blocks.ranks(); ++from) {
    if (!blocks.are_pairs()) {
      fmt::format_to(out(text), " {}", blocks.of(from).count);
      continue;
    }
    if (from > 0) text += ',';
    for (int to = 0; to < blocks.ranks(); ++to) {
      fmt::format_to(out(text), " {}", blocks.sent(from, to).count);
    }
  }
  if (blocks.are_pairs() || blocks.all_receive()) return text;
  text += " receivers";
  for (int rank = 0; rank < blocks.ranks(); ++rank) {
    if (blocks.receives(rank)) fmt::format_to(out(text), " {}", rank);
  }
  return text;
}

void append_after(std::string& text, const Schedule& schedule, const Op& op) {
  std::string_view before = " after ";
  for (const OpId predecessor : schedule.after_of(op)) {
    fmt::format_to(std::back_inserter(text), "{}{}", before, predecessor);
    before = " ";
  }
}

}  // namespace
}  // namespace unisono::schedule
