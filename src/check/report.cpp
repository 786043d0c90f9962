// SPDX-License-Identifier: BSD-3-Clause
#include "check/report.hpp"

#include <fmt/format.h>

#include "schedule/text.hpp"

namespace unisono::check {

void Report::add(Rule rule, int rank, int op, std::string_view what) {
  if (full()) return;
  std::string where = placement_ == Placement::in_place ? "in place, " : "";
  if (rank >= 0) where += fmt::format("rank {}", rank);
  if (rank >= 0 && op >= 0) {
    where += ", " + name_op(set_[static_cast<std::size_t>(rank)], op);
  }
  violations_.push_back({rule, rank, op, where + (rank >= 0 ? ": " : "") + std::string(what)});
}

std::string name_op(const Schedule& schedule, OpId op) {
  return fmt::format("op {} ({})", op, schedule::print_op(schedule, op));
}

std::string name_ranks(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (i > 0) text += ", ";
    text += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace unisono::check
