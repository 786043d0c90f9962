// SPDX-License-Identifier: BSD-3-Clause
#include "check/form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/index.hpp"
#include "schedule/text.hpp"

namespace unisono::check {
namespace {

using base::index;

using schedule::Collective;
using schedule::Memory;
using schedule::OpKind;
using schedule::Shape;
using schedule::Slot;

bool shape_is_sound(const Shape& shape, Report& report);
bool slots_are_sound(const Schedule& schedule, Report& report);
void check_op(std::span<const Schedule> set, const Schedule& schedule, OpId id, Report& report);
void check_predecessors(const Schedule& schedule, OpId id, Report& report);
void check_targets(std::span<const Schedule> set, const Schedule& schedule, OpId id,
                   Report& report);
bool check_range(const Schedule& schedule, OpId id, const Range& range, Report& report);
void check_result(const Schedule& schedule, OpId id, Report& report);
void check_overlap(const Schedule& schedule, OpId id, const Layout& layout, Report& report);
void link_targets(std::span<const Schedule> set, OpAt at, Links& links, Report& report);
void check_waits(const Schedule& schedule, const Links& links, Report& report);

bool in_pool(std::int32_t first, std::int32_t count, std::size_t pool) {
  return first >= 0 && count >= 0 && index(std::int64_t{first} + count) <= pool;
}

}  // namespace

Layout::Layout(const Schedule& schedule, Placement placement)
    : inputs_(schedule::input_count(schedule.shape, schedule.rank)),
      outputs_(schedule::output_count(schedule.shape, schedule.rank)) {
  if (placement == Placement::in_place) {
    shared_ = schedule::in_place(schedule.shape, schedule.rank);
  }
}

Range Layout::operator()(Range range) const {
  if (!shared_) return range;
  if (range.memory == Memory::input) {
    return schedule::output(shared_->input + range.offset, range.count);
  }
  if (range.memory == Memory::output) range.offset += shared_->output;
  return range;
}

std::int64_t Layout::input_size() const { return shared_ ? 0 : inputs_; }

std::int64_t Layout::output_size() const {
  return shared_ ? std::max(shared_->input + inputs_, shared_->output + outputs_) : outputs_;
}

void check_form(std::span<const Schedule> set, Report& report) {
  if (set.empty()) {
    report.add(Rule::malformed, -1, -1, "the set holds no schedule");
    return;
  }
  const Shape& shape = set.front().shape;
  if (!shape_is_sound(shape, report)) return;
  if (std::cmp_not_equal(set.size(), shape.ranks)) {
    report.add(Rule::malformed, -1, -1,
               fmt::format("the set holds {} schedules for {} ranks", set.size(), shape.ranks));
    return;
  }
  bool sound = true;
  for (std::size_t rank = 0; rank < set.size(); ++rank) {
    if (std::cmp_not_equal(set[rank].rank, rank)) {
      report.add(Rule::malformed, -1, -1,
                 fmt::format("schedule {} of the set is for rank {}", rank, set[rank].rank));
      return;
    }
    if (!(set[rank].shape == shape)) {
      report.add(Rule::malformed, set[rank].rank, -1, "its shape differs from that of rank 0");
      return;
    }
    sound = slots_are_sound(set[rank], report) && sound;
  }
  if (!sound) return;
  for (const Schedule& schedule : set) {
    for (OpId id = 0; std::cmp_less(id, schedule.ops.size()) && !report.full(); ++id) {
      check_op(set, schedule, id, report);
    }
  }
}

void check_by_one(std::span<const Schedule> set, Report& report) {
  const Shape& shape = set.front().shape;
  if (!shape.by_one) return;
  // A root has the result. Elsewhere rank 0 computes it, so that all collectives do it alike.
  const int by = schedule::is_rooted(shape.collective) ? shape.root : 0;
  for (const Schedule& schedule : set) {
    if (schedule.rank == by) continue;
    for (OpId id = 0; std::cmp_less(id, schedule.ops.size()); ++id) {
      const OpKind kind = schedule.ops[index(id)].kind;
      if (kind != OpKind::reduce && kind != OpKind::sum) continue;
      report.add(Rule::by_several, schedule.rank, id,
                 fmt::format("applies the operator, which rank {} alone shall do", by));
      break;
    }
  }
}

void check_overlap_in_place(std::span<const Schedule> set, Report& report) {
  for (const Schedule& schedule : set) {
    const Layout layout(schedule, Placement::in_place);
    if (!layout.shares()) continue;
    for (OpId id = 0; std::cmp_less(id, schedule.ops.size()); ++id) {
      check_overlap(schedule, id, layout, report);
    }
  }
}

Links link_messages(std::span<const Schedule> set, Report& report) {
  Links links;
  for (const Schedule& schedule : set) links.filler.emplace_back(schedule.slots.size());
  for (const Schedule& schedule : set) {
    for (OpId id = 0; std::cmp_less(id, schedule.ops.size()); ++id) {
      link_targets(set, {schedule.rank, id}, links, report);
    }
  }
  for (const Schedule& schedule : set) check_waits(schedule, links, report);
  return links;
}

namespace {

bool shape_is_sound(const Shape& shape, Report& report) {
  const auto refuse = [&](std::string_view what) {
    report.add(Rule::malformed, -1, -1, what);
    return false;
  };
  if (static_cast<int>(shape.collective) >= schedule::kCollectiveCount) {
    return refuse("unknown collective");
  }
  if (shape.ranks < 1) return refuse(fmt::format("{} ranks: there must be one", shape.ranks));
  if (shape.root < 0 || shape.root >= shape.ranks) {
    return refuse(fmt::format("root {} of {} ranks", shape.root, shape.ranks));
  }
  if (shape.root != 0 && !schedule::is_rooted(shape.collective)) {
    return refuse(fmt::format("root {} in a collective that has no root", shape.root));
  }
  if (shape.count < 0 || shape.count > std::numeric_limits<std::int64_t>::max() / shape.ranks) {
    return refuse(fmt::format("count {} is out of range", shape.count));
  }
  if (const auto fault = schedule::blocks_fault(shape); !fault.empty()) return refuse(fault);
  if (const auto fault = schedule::hosts_fault(shape); !fault.empty()) return refuse(fault);
  return true;
}

bool slots_are_sound(const Schedule& schedule, Report& report) {
  bool sound = true;
  const auto refuse = [&](Rule rule, std::string_view what) {
    report.add(rule, schedule.rank, -1, what);
    sound = false;
  };
  if (schedule.scratch_count < 0) {
    refuse(Rule::malformed, fmt::format("scratch of {} elements", schedule.scratch_count));
  }
  for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
    const Slot& slot = schedule.slots[i];
    if (slot.count < 0) {
      refuse(Rule::malformed, fmt::format("slot {} of {} elements", i, slot.count));
    }
    if (slot.source < 0 || slot.source >= schedule.shape.ranks) {
      refuse(Rule::bad_peer,
             fmt::format("slot {} is filled by rank {}, which does not exist", i, slot.source));
    } else if (slot.source == schedule.rank) {
      refuse(Rule::bad_peer, fmt::format("slot {} is filled by the rank itself: use copy", i));
    }
  }
  return sound;
}

void check_op(std::span<const Schedule> set, const Schedule& schedule, OpId id, Report& report) {
  const Op& op = schedule.ops[index(id)];
  if (static_cast<int>(op.kind) >= schedule::kOpKindCount) {
    report.add(Rule::malformed, schedule.rank, id, "unknown kind of op");
    return;
  }
  if (!in_pool(op.first_after, op.after_count, schedule.after.size()) ||
      !in_pool(op.first_target, op.target_count, schedule.targets.size()) ||
      !in_pool(op.first_operand, op.operand_count, schedule.operands.size())) {
    report.add(Rule::malformed, schedule.rank, id,
               "predecessors, targets or operands outside their pool");
    return;
  }
  check_predecessors(schedule, id, report);
  switch (op.kind) {
    case OpKind::send:
    case OpKind::multicast:
      if (op.kind == OpKind::send && op.target_count != 1) {
        report.add(Rule::malformed, schedule.rank, id,
                   fmt::format("a send has one target, not {}", op.target_count));
      }
      check_range(schedule, id, op.left, report);
      check_targets(set, schedule, id, report);
      return;
    case OpKind::wait:
      if (op.slot < 0 || std::cmp_greater_equal(op.slot, schedule.slots.size())) {
        report.add(Rule::bounds, schedule.rank, id,
                   fmt::format("the rank has {} slots", schedule.slots.size()));
      }
      return;
    case OpKind::reduce:
    case OpKind::copy:
    case OpKind::sum:
      check_result(schedule, id, report);
      return;
  }
}

void check_predecessors(const Schedule& schedule, OpId id, Report& report) {
  for (const OpId before : schedule.after_of(schedule.ops[index(id)])) {
    if (before < 0 || std::cmp_greater_equal(before, schedule.ops.size())) {
      report.add(Rule::bad_predecessor, schedule.rank, id,
                 fmt::format("comes after op {}, which does not exist", before));
    } else if (before >= id) {
      report.add(Rule::bad_predecessor, schedule.rank, id,
                 fmt::format("comes after op {}, which does not stand before it", before));
    }
  }
}

void check_targets(std::span<const Schedule> set, const Schedule& schedule, OpId id,
                   Report& report) {
  for (const auto& [peer, slot] : schedule.targets_of(schedule.ops[index(id)])) {
    if (peer < 0 || std::cmp_greater_equal(peer, set.size())) {
      report.add(Rule::bad_peer, schedule.rank, id, fmt::format("there is no rank {}", peer));
    } else if (peer == schedule.rank) {
      report.add(Rule::bad_peer, schedule.rank, id, "a rank cannot send to itself: use copy");
    } else if (slot < 0 || std::cmp_greater_equal(slot, set[index(peer)].slots.size())) {
      report.add(Rule::bad_peer, schedule.rank, id,
                 fmt::format("rank {} has no slot {}", peer, slot));
    }
  }
}

bool check_range(const Schedule& schedule, OpId id, const Range& range, Report& report) {
  std::int64_t room = 0;
  const int memory = static_cast<int>(range.memory);
  if (memory >= schedule::kMemoryCount) {
    report.add(Rule::malformed, schedule.rank, id, fmt::format("unknown memory {}", memory));
    return false;
  }
  switch (range.memory) {
    case Memory::input:
      room = schedule::input_count(schedule.shape, schedule.rank);
      break;
    case Memory::output:
      room = schedule::output_count(schedule.shape, schedule.rank);
      break;
    case Memory::scratch:
      room = schedule.scratch_count;
      break;
    case Memory::slot:
      if (range.slot < 0 || std::cmp_greater_equal(range.slot, schedule.slots.size())) {
        report.add(Rule::bounds, schedule.rank, id,
                   fmt::format("slot {} does not exist: the rank has {}", range.slot,
                               schedule.slots.size()));
        return false;
      }
      room = schedule.slots[index(range.slot)].count;
      break;
  }
  if (range.offset < 0 || range.count < 0 || range.offset > room ||
      range.count > room - range.offset) {
    report.add(Rule::bounds, schedule.rank, id,
               fmt::format("{} lies outside its {} elements", schedule::print_range(range), room));
    return false;
  }
  return true;
}

// reduce, copy and sum: operands in bounds, of one length, and a target that may be written.
void check_result(const Schedule& schedule, OpId id, Report& report) {
  const Op& op = schedule.ops[index(id)];
  if (op.kind != OpKind::copy && !schedule::is_reduction(schedule.shape.collective)) {
    report.add(Rule::bad_operand, schedule.rank, id, "this collective has no operator");
  }
  if (op.kind == OpKind::reduce && schedule.shape.exact) {
    report.add(Rule::partial_sum, schedule.rank, id, "a reduce rounds each time: use sum");
  }
  if (op.kind == OpKind::sum && op.operand_count < 1) {
    report.add(Rule::malformed, schedule.rank, id, "a sum has one operand or more");
  }
  bool sound = check_range(schedule, id, op.target, report);
  bool equal = true;
  schedule::for_each_read(schedule, op, [&](const Range& operand) {
    sound = check_range(schedule, id, operand, report) && sound;
    equal = equal && operand.count == op.target.count;
  });
  if (!sound) return;
  if (op.target.memory == Memory::input || op.target.memory == Memory::slot) {
    report.add(Rule::malformed, schedule.rank, id,
               "only output and scratch may be written: inputs belong to the caller, slots to "
               "their senders");
  }
  if (!equal) {
    report.add(Rule::wrong_size, schedule.rank, id, "operands of unequal length");
  } else {
    check_overlap(schedule, id, Layout(schedule, Placement::separate), report);
  }
}

void check_overlap(const Schedule& schedule, OpId id, const Layout& layout, Report& report) {
  const Op& op = schedule.ops[index(id)];
  const Range target = layout(op.target);
  const auto check_operand = [&](const Range& written) {
    const Range operand = layout(written);
    if (operand.memory != target.memory || operand.slot != target.slot || operand == target) return;
    if (operand.offset < target.offset + target.count &&
        target.offset < operand.offset + operand.count) {
      report.add(Rule::overlap, schedule.rank, id,
                 fmt::format("{} overlaps its target {} without coinciding",
                             schedule::print_range(operand), schedule::print_range(target)));
    }
  };
  if (schedule::writes_range(op)) schedule::for_each_read(schedule, op, check_operand);
}

void link_targets(std::span<const Schedule> set, OpAt at, Links& links, Report& report) {
  const Schedule& sender = set[index(at.rank)];
  const Op& op = sender.ops[index(at.op)];
  for (const auto& [peer, slot] : sender.targets_of(op)) {
    const Slot& place = set[index(peer)].slots[index(slot)];
    OpAt& filler = links.filler[index(peer)][index(slot)];
    if (place.source != at.rank) {
      report.add(Rule::wrong_source, at.rank, at.op,
                 fmt::format("slot {} of rank {} is for rank {}", slot, peer, place.source));
    } else if (filler.op >= 0) {
      report.add(Rule::filled_twice, at.rank, at.op,
                 fmt::format("{} fills slot {} of rank {} already", name_op(sender, filler.op),
                             slot, peer));
    } else {
      filler = at;
    }
    if (op.left.count != place.count) {
      report.add(Rule::wrong_size, at.rank, at.op,
                 fmt::format("{} elements for slot {} of rank {}, which holds {}", op.left.count,
                             slot, peer, place.count));
    }
  }
}

void check_waits(const Schedule& schedule, const Links& links, Report& report) {
  std::vector<OpId> waits(schedule.slots.size(), -1);
  for (OpId id = 0; std::cmp_less(id, schedule.ops.size()); ++id) {
    const Op& op = schedule.ops[index(id)];
    if (op.kind == OpKind::wait) waits[index(op.slot)] = id;
  }
  for (std::size_t slot = 0; slot < waits.size(); ++slot) {
    const bool filled = links.filler[index(schedule.rank)][slot].op >= 0;
    // An unused slot for an empty block may keep its number.
    if (!filled && waits[slot] < 0 && schedule.slots[slot].count == 0) continue;
    if (!filled) {
      report.add(Rule::never_filled, schedule.rank, waits[slot],
                 fmt::format("slot {} is never filled: rank {} does not send to it", slot,
                             schedule.slots[slot].source));
    } else if (waits[slot] < 0) {
      report.add(Rule::never_waited, schedule.rank, -1,
                 fmt::format("slot {} is filled by rank {} but never waited for, so that a later "
                             "operation could not reuse it",
                             slot, schedule.slots[slot].source));
    }
  }
}

}  // namespace
}  // namespace unisono::check
