// SPDX-License-Identifier: BSD-3-Clause
// Builder: the way algorithms write a schedule. Each call appends one op and returns its id;
// `after` lists its predecessors (kNone entries are ignored, which keeps callers free of ifs).
// Slots are numbered in the order of slot() calls, so both ends of a message have to agree on
// that order by arithmetic. Not thread-safe; a Builder is used by one function and dropped.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include "base/check.hpp"
#include "schedule/schedule.hpp"

namespace unisono::schedule {

class Builder {
 public:
  static constexpr OpId kNone = -1;
  using After = std::initializer_list<OpId>;

  // `ops_expected` avoids reallocation; it is a hint, not a limit. Leaves of trees have fewer.
  Builder(const Shape& shape, int rank, int ops_expected = 4);

  // A slot that receives `count` elements from `source`.
  SlotId slot(int source, std::int64_t count) {
    schedule_.slots.push_back({source, count});
    return static_cast<SlotId>(schedule_.slots.size() - 1);
  }
  // `count` elements of scratch memory.
  Range scratch(std::int64_t count);

  OpId send(int peer, SlotId peer_slot, const Range& source, After after = {}) {
    if (!keeps_steps_) return kLeftOut;
    Op& op = append(OpKind::send, after);
    op.left = source;
    op.first_target = static_cast<std::int32_t>(schedule_.targets.size());
    op.target_count = 1;
    schedule_.targets.push_back({peer, peer_slot});
    return last();
  }
  OpId multicast(std::span<const Target> targets, Range source, After after = {});
  OpId wait(SlotId slot, After after = {}) {
    if (!keeps_steps_) return kLeftOut;
    append(OpKind::wait, after).slot = slot;
    return last();
  }
  OpId reduce(const Range& target, const Range& left, const Range& right, After after = {}) {
    if (!keeps_steps_) return kLeftOut;
    Op& op = append(OpKind::reduce, after);
    op.target = target;
    op.left = left;
    op.right = right;
    return last();
  }
  OpId copy(const Range& target, const Range& source, After after = {}) {
    if (!keeps_steps_) return kLeftOut;
    Op& op = append(OpKind::copy, after);
    op.target = target;
    op.left = source;
    return last();
  }
  OpId sum(Range target, std::span<const Range> operands, After after = {});

  // More predecessors of the op added last (for lists whose length is not known in advance).
  void also_after(OpId predecessor) {
    if (predecessor == kNone || !keeps_order_) return;
    schedule_.after.push_back(predecessor);
    ++schedule_.ops.back().after_count;
  }
  void also_after(std::span<const OpId> predecessors) {
    if (!keeps_order_) return;
    std::vector<OpId>& all = schedule_.after;
    const auto before = static_cast<std::ptrdiff_t>(all.size());
    all.insert(all.end(), predecessors.begin(), predecessors.end());
    all.erase(std::remove(all.begin() + before, all.end(), kNone), all.end());
    schedule_.ops.back().after_count +=
        static_cast<std::int32_t>(static_cast<std::ptrdiff_t>(all.size()) - before);
  }
  // One more target of the multicast added last (for sets whose size is not known in advance).
  void also_to(Target target) {
    schedule_.targets.push_back(target);
    ++schedule_.ops.back().target_count;
  }

  // A whole slot as a range.
  Range of(SlotId slot) const {
    UNISONO_CHECK(slot >= 0 && static_cast<std::size_t>(slot) < schedule_.slots.size(),
                  "a slot that was never made");
    return slot_range(slot, 0, schedule_.slots[static_cast<std::size_t>(slot)].count);
  }

  Schedule take() && { return std::move(schedule_); }

 private:
  Op& append(OpKind kind, After after) {
    // To copy an empty op costs half of making one: compilers make zeroes by a slow instruction.
    static constexpr Op kEmpty;
    schedule_.ops.push_back(kEmpty);
    Op& op = schedule_.ops.back();
    op.kind = kind;
    op.first_after = static_cast<std::int32_t>(schedule_.after.size());
    if (!keeps_order_) return op;
    for (const OpId predecessor : after) {
      if (predecessor != kNone) schedule_.after.push_back(predecessor);
    }
    op.after_count = static_cast<std::int32_t>(schedule_.after.size()) - op.first_after;
    return op;
  }
  OpId last() const { return static_cast<OpId>(schedule_.ops.size() - 1); }

  // In place of the id of a step that is left out. Nobody looks at it, since the order is, too.
  static constexpr OpId kLeftOut = 0;

  bool keeps_order_, keeps_steps_;  // Spares::Order, Spares::WithoutSteps
  Schedule schedule_;
};

}  // namespace unisono::schedule
