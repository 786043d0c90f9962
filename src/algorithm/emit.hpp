// SPDX-License-Identifier: BSD-3-Clause
// Emit: the short op sequences that several algorithms write alike. Each appends ops to a Builder
// with complete predecessors, safe in place. Only algorithm files use it; any thread with its own
// Builder.
#pragma once

#include "schedule/builder.hpp"

namespace unisono::algorithm {

using schedule::Builder;
using schedule::OpId;
using schedule::Range;
using schedule::SlotId;

// Elements that may be read once `ready` is done (Builder::kNone: from the start).
struct Value {
  Range range;
  OpId ready = Builder::kNone;
};

// The slot of `source` at rank `at`, where slots are one a rank but the own, in the order of ranks.
inline SlotId slot_of(int source, int at) { return source < at ? source : source - 1; }

inline Range input(const schedule::Block& block) {
  return schedule::input(block.offset, block.count);
}
inline Range output(const schedule::Block& block) {
  return schedule::output(block.offset, block.count);
}

// Waits for the slots first .. first + slots - 1 one after another. Each is combined on the right
// of the value so far, own op s0 op s1 ..., in `target`. Without slots, returns own unchanged.
inline Value combine_slots(Builder& b, Value own, Range target, SlotId first, int slots) {
  for (SlotId slot = first; slot < first + slots; ++slot) {
    const OpId arrived = b.wait(slot);
    own = {target, b.reduce(target, own.range, b.of(slot), {arrived, own.ready})};
  }
  return own;
}

// Waits for `lower` and then for `higher` slots from `first` on, and combines
// s0 op s1 op ... op own op ... in `target`, which may be the place of `own`. More than one lower
// slot is combined in `scratch` first.
inline Value combine_around(Builder& b, Value own, Range target, Range scratch, SlotId first,
                            int lower, int higher) {
  if (lower > 0) {
    Value left{b.of(first), b.wait(first, {own.ready})};
    if (lower > 1) left = combine_slots(b, left, scratch, first + 1, lower - 1);
    own = {target, b.reduce(target, left.range, own.range, {left.ready, own.ready})};
  }
  return combine_slots(b, own, target, first + lower, higher);
}

// Sends `own` to a peer and receives the whole result from it: output = own slot `result`.
inline void give_and_take(Builder& b, int peer, SlotId peer_slot, Value own, SlotId result) {
  const OpId given = b.send(peer, peer_slot, own.range, {own.ready});
  const OpId arrived = b.wait(result);
  const Range whole = b.of(result);
  b.copy(schedule::output(0, whole.count), whole, {arrived, given});
}

// One message to `count` places, target_of(0) .. target_of(count - 1): staged once if several.
template <typename TargetOf>
OpId send_to_each(Builder& b, int count, Value value, const TargetOf& target_of) {
  if (count == 0) return Builder::kNone;
  if (count == 1) {
    const schedule::Target only = target_of(0);
    return b.send(only.peer, only.slot, value.range, {value.ready});
  }
  const OpId sent = b.multicast({}, value.range, {value.ready});
  for (int i = 0; i < count; ++i) b.also_to(target_of(i));
  return sent;
}

// Multicasts `value` to slot slot_at(peer) of every rank but `rank`; nothing to do for a single
// rank.
template <typename SlotAt>
OpId multicast_to_others(Builder& b, int ranks, int rank, Value value, const SlotAt& slot_at) {
  if (ranks == 1) return Builder::kNone;
  const OpId sent = b.multicast({}, value.range, {value.ready});
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer != rank) b.also_to({peer, slot_at(peer)});
  }
  return sent;
}
// Multicasts to the same slot of each.
inline void multicast_to_others(Builder& b, int ranks, int rank, SlotId slot, Value value) {
  multicast_to_others(b, ranks, rank, value, [slot](int) { return slot; });
}

}  // namespace unisono::algorithm
