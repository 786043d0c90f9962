// SPDX-License-Identifier: BSD-3-Clause
// Report: collects violations up to a limit. Each message begins with its rank and op. Only check/
// uses it; one Report serves one prove().
#pragma once

#include <span>
#include <string>
#include <vector>

#include "check/check.hpp"

namespace unisono::check {

using schedule::Op;
using schedule::OpId;
using schedule::Range;
using schedule::Schedule;
using schedule::SlotId;

// The two passes of a proof: input apart from the output, or inside it.
enum class Placement : std::uint8_t { separate, in_place };

class Report {
 public:
  Report(std::span<const Schedule> set, int limit) : set_(set), limit_(limit < 1 ? 1 : limit) {}

  // Later messages name this pass.
  void begin_pass(Placement placement) { placement_ = placement; }

  // rank and op may be -1 if a violation concerns none. Does nothing beyond the limit.
  void add(Rule rule, int rank, int op, std::string_view what);

  bool empty() const { return violations_.empty(); }
  bool full() const { return static_cast<int>(violations_.size()) >= limit_; }
  std::vector<Violation> take() && { return std::move(violations_); }

 private:
  std::span<const Schedule> set_;
  int limit_;
  Placement placement_ = Placement::separate;
  std::vector<Violation> violations_;
};

// "op 7 (wait slot 2)"
std::string name_op(const Schedule& schedule, OpId op);
// "rank 3" or "ranks 0-2, 5", for lists in ascending order.
std::string name_ranks(std::span<const int> ranks);

}  // namespace unisono::check
