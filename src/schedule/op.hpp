// SPDX-License-Identifier: BSD-3-Clause
// Op: one step of a rank's schedule. Six kinds, over four kinds of memory, in elements.
//
//   send       write a source range into a slot of one peer and raise the slot's flag (one-sided)
//   multicast  the same, to a set of (peer, slot): staged once, seen by all
//   wait       until one of the own slots has arrived
//   reduce     target = left op right, element by element (left and right keep their sides)
//   copy       target = left
//   sum        target = all operands combined; a sum of floating-point numbers is rounded once
//
// A slot is a receive place for exactly one message of one peer per operation; it may be read after
// its wait, and only its sender writes it. A send of zero elements is a pure signal; its source is
// free when the op is done. Ranges of a reduce, copy or sum either coincide with the target or do
// not overlap it; a copy onto itself (in place) touches nothing. Value types; any thread.
#pragma once

#include <cstdint>

namespace unisono::schedule {

enum class OpKind : std::uint8_t { send, multicast, wait, reduce, copy, sum };
inline constexpr int kOpKindCount = 6;

enum class Memory : std::uint8_t { input, output, scratch, slot };
inline constexpr int kMemoryCount = 4;

using OpId = std::int32_t;
using SlotId = std::int32_t;

// `count` elements from element `offset` of a memory; for Memory::slot, of this rank's slot `slot`.
struct Range {
  Memory memory = Memory::input;
  SlotId slot = -1;
  std::int64_t offset = 0;
  std::int64_t count = 0;

  bool operator==(const Range&) const = default;
};

inline Range input(std::int64_t offset, std::int64_t count) {
  return {Memory::input, -1, offset, count};
}
inline Range output(std::int64_t offset, std::int64_t count) {
  return {Memory::output, -1, offset, count};
}
inline Range scratch(std::int64_t offset, std::int64_t count) {
  return {Memory::scratch, -1, offset, count};
}
inline Range slot_range(SlotId slot, std::int64_t offset, std::int64_t count) {
  return {Memory::slot, slot, offset, count};
}

// The slot of a peer that a send or multicast writes.
struct Target {
  std::int32_t peer = -1;
  SlotId slot = -1;

  bool operator==(const Target&) const = default;
};

// Predecessors, targets and operands lie in the schedule's pools (Schedule::after, targets,
// operands).
struct Op {
  OpKind kind = OpKind::send;
  Range target;      // reduce, copy, sum: where the result goes
  Range left;        // send, multicast: the source; reduce: left operand; copy: the source
  Range right;       // reduce: right operand
  SlotId slot = -1;  // wait: this rank's slot
  std::int32_t first_target = 0, target_count = 0;  // send: one; multicast: any number
  std::int32_t first_after = 0, after_count = 0;
  std::int32_t first_operand = 0, operand_count = 0;  // sum: one or more
};

// Whether the op writes its target range.
inline bool writes_range(const Op& op) {
  return op.kind == OpKind::reduce || op.kind == OpKind::copy || op.kind == OpKind::sum;
}

}  // namespace unisono::schedule
