// SPDX-License-Identifier: BSD-3-Clause
// Builder: the way algorithms write a schedule. Each call appends one op and returns its id;
// `after` lists its predecessors (kNone entries are ignored, which keeps callers free of ifs).
// Slots are numbered in the order of slot() calls, so both ends of a message have to agree on
// that order by arithmetic. Not thread-safe; a Builder is used by one function and dropped.
#pragma once

#include <initializer_list>
#include <span>
#include <utility>

#include "schedule/schedule.hpp"

namespace unisono::schedule {

class Builder {
 public:
  static constexpr OpId kNone = -1;
  using After = std::initializer_list<OpId>;

  // `ops_expected` avoids reallocation; it is a hint, not a limit. Leaves of trees have fewer.
  Builder(const Shape& shape, int rank, int ops_expected = 4);

  // A slot that receives `count` elements from `source`.
  SlotId slot(int source, std::int64_t count);
  // `count` elements of scratch memory.
  Range scratch(std::int64_t count);

  OpId send(int peer, SlotId peer_slot, Range source, After after = {});
  OpId multicast(std::span<const Target> targets, Range source, After after = {});
  OpId wait(SlotId slot, After after = {});
  OpId reduce(Range target, Range left, Range right, After after = {});
  OpId copy(Range target, Range source, After after = {});
  OpId sum(Range target, std::span<const Range> operands, After after = {});

  // More predecessors of the op added last (for lists whose length is not known in advance).
  void also_after(OpId predecessor);
  // One more target of the multicast added last (for sets whose size is not known in advance).
  void also_to(Target target);

  // A whole slot as a range.
  Range of(SlotId slot) const;

  Schedule take() && { return std::move(schedule_); }

 private:
  Op& append(OpKind kind, After after);
  OpId last() const { return static_cast<OpId>(schedule_.ops.size() - 1); }

  Schedule schedule_;
};

}  // namespace unisono::schedule
