// SPDX-License-Identifier: BSD-3-Clause
// The first floor of a proof: every field makes sense on its own (check_form), and every slot has
// exactly one message (link_messages). What stands above may index without asking.
#pragma once

#include <span>
#include <vector>

#include "check/report.hpp"

namespace unisono::check {

// An op of the set.
struct OpAt {
  int rank = -1;
  OpId op = -1;
};

// filler[rank][slot]: the send or multicast that fills it.
struct Links {
  std::vector<std::vector<OpAt>> filler;
};

// The same elements as they lie in memory in this pass: in place, the input is part of the output.
Range placed(const Schedule& schedule, Range range, Placement placement);

// malformed, bounds, bad_peer, bad_predecessor, wrong_size (operands), overlap, bad_operand.
void check_form(std::span<const Schedule> set, Report& report);

// overlap again, with the input inside the output.
void check_overlap_in_place(std::span<const Schedule> set, Report& report);

// wrong_source, wrong_size (messages), filled_twice, never_filled, never_waited. Needs a set that
// check_form accepts; the links are whole only if the report stays empty.
Links link_messages(std::span<const Schedule> set, Report& report);

}  // namespace unisono::check
