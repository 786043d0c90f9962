// SPDX-License-Identifier: BSD-3-Clause
// The first level of a proof: every field makes sense on its own (check_form), and every slot has
// exactly one message (link_messages). Later levels may index without further checks.
#pragma once

#include <optional>
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

// The positions of a rank's input and output in this pass. In place, both are parts of one buffer,
// named output; ranges of both become ranges of it.
class Layout {
 public:
  Layout(const Schedule& schedule, Placement placement);

  Range operator()(Range range) const;
  // Whether this pass differs from that with separate buffers.
  bool shares() const { return shared_.has_value(); }
  // The buffers, in elements; in place, output_size() is that of the one buffer.
  std::int64_t input_size() const;
  std::int64_t output_size() const;

 private:
  std::int64_t inputs_, outputs_;
  std::optional<schedule::InPlace> shared_;
};

// malformed, bounds, bad_peer, bad_predecessor, wrong_size (operands), overlap, bad_operand.
void check_form(std::span<const Schedule> set, Report& report);

// by_several.
void check_by_one(std::span<const Schedule> set, Report& report);

// overlap again, with input and output in one buffer.
void check_overlap_in_place(std::span<const Schedule> set, Report& report);

// wrong_source, wrong_size (messages), filled_twice, never_filled, never_waited. Needs a set that
// check_form accepts; the links are whole only if the report stays empty.
Links link_messages(std::span<const Schedule> set, Report& report);

}  // namespace unisono::check
