// SPDX-License-Identifier: BSD-3-Clause
#include "sim/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace unisono::sim {
namespace {

std::string_view name_of(StepKind kind) {
  switch (kind) {
    case StepKind::send:
      return "send";
    case StepKind::follow:
      return "multicast";
    case StepKind::wait:
      return "wait";
    case StepKind::work:
      return "work";
  }
  return "";
}

}  // namespace

std::string goal_text(const ProgramSet& programs) {
  std::string text = fmt::format("num_ranks {}\n", programs.ranks());
  const auto out = std::back_inserter(text);
  for (int rank = 0; rank < programs.ranks(); ++rank) {
    fmt::format_to(out, "\nrank {} {{\n", rank);
    int label = 0;
    for (const Step& step : programs.steps(programs.program(rank))) {
      const StepCost& cost = programs.cost(step);
      ++label;
      switch (step.kind) {
        case StepKind::send:
        case StepKind::follow:
          fmt::format_to(out, "l{}: send {}b to {} tag {}\n", label, cost.bytes,
                         programs.peer(rank, step), step.slot);
          break;
        case StepKind::wait:
          fmt::format_to(out, "l{}: recv {}b from {} tag {}\n", label, cost.bytes,
                         programs.peer(rank, step), step.slot);
          break;
        case StepKind::work:
          fmt::format_to(out, "l{}: calc {}\n", label, std::llround(to_ns(cost.occupied)));
          break;
      }
      if (label > 1) fmt::format_to(out, "l{} requires l{}\n", label, label - 1);
    }
    text += "}\n";
  }
  return text;
}

std::string timeline_json(std::vector<Activity> activities) {
  std::ranges::stable_sort(activities, {}, &Activity::begin);
  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  const auto out = std::back_inserter(text);
  bool first = true;
  for (const Activity& each : activities) {
    // Times are in microseconds.
    fmt::format_to(
        out, R"({}{{"name": "{}", "ph": "X", "pid": 0, "tid": {}, "ts": {:.6f}, "dur": {:.6f})",
        first ? "\n" : ",\n", name_of(each.kind), each.rank, each.begin / 1e6,
        (each.end - each.begin) / 1e6);
    if (each.peer >= 0) fmt::format_to(out, R"(, "args": {{"peer": {}}})", each.peer);
    text += '}';
    first = false;
  }
  return text + "\n]}\n";
}

}  // namespace unisono::sim
