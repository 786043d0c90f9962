// SPDX-License-Identifier: BSD-3-Clause
// Proofs over the schedules of all ranks of one operation. If prove() accepts them, every legal
// order of execution is correct:
//   well-formed  ranges, slots, peers and predecessors are in bounds; predecessors come before;
//                only output and scratch are written; nobody sends to itself
//   once         every slot is filled by exactly one send of the right peer and size, and every
//                slot is waited for before it is read; a slot of no elements may be left unused
//   no race      two ops that touch the same element, one of them writing, are ordered by
//                predecessors; so every legal order gives one result. The ends of messages order
//                too. A send's source is read when the send is done, not later; a copy onto itself
//                (which happens in place) touches nothing
//   no deadlock  messages and each rank's ops, run in the order they stand, have no cycle
//   complete     by symbolic execution, in which an element is the sequence of (rank, element)
//                contributions it holds: every output is the collective's definition, each
//                contribution once, in the order of ranks if the shape is ordered
//   exact        where the shape says so, results come from one sum step of contributions alone
//   in place     all of it again with input and output in one buffer
// Memory and time grow with the size of the set times the number of elements: prove small counts;
// algorithms do not depend on the count beyond how it divides. Any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "schedule/schedule.hpp"

namespace unisono::check {

enum class Rule : std::uint8_t {
  malformed,        // a field that makes no sense: negative counts, unknown kinds, wrong shape
  bounds,           // a range outside its memory
  bad_peer,         // a peer or slot that does not exist
  bad_predecessor,  // unknown, itself, or later in the program
  never_filled,     // a slot no send writes
  filled_twice,     // a slot two sends write
  wrong_source,     // a slot written by another rank than it names
  wrong_size,       // a message longer or shorter than its slot, operands of unequal length
  unwaited_read,    // a slot read without an ordered wait before
  never_waited,     // a slot that is filled but never waited for (its reuse would be unsafe)
  race,             // conflicting accesses without an order
  overlap,          // operands that overlap their target without coinciding
  deadlock,         // a cycle of ops and messages
  undefined_read,   // an element read before it was written
  missing,          // a contribution that the output lacks
  doubled,          // a contribution that the output holds more than once
  misplaced,        // a contribution that does not belong there
  out_of_order,     // an ordered reduction whose contributions are not in the order of ranks
  bad_operand,      // reduce in a collective that has no operator
  partial_sum,      // a result that was rounded before, in an exact shape
  by_several,       // a second rank that applies the operator, in a shape by one
};

std::string_view rule_name(Rule rule);

// Where and what, for people: "rank 3, op 7 (wait slot 2): never filled: no rank sends to it".
struct Violation {
  Rule rule = Rule::malformed;
  int rank = -1;
  int op = -1;  // -1: no single op
  std::string message;
};

// The violations found, at most `limit`; empty means proved. set[r] is the schedule of rank r.
// Later rules are checked only where the earlier ones hold (a malformed set is not executed).
std::vector<Violation> prove(std::span<const schedule::Schedule> set, int limit = 8);

}  // namespace unisono::check
