// SPDX-License-Identifier: BSD-3-Clause
// graphviz() of text.hpp. Ops of a rank stand in a cluster; thin arrows are predecessors, bold ones
// messages, which do not push columns down (constraint=false), so that the ranks stand in order.
// Bears malformed sets: an arrow that leads nowhere is left out.
#include <fmt/format.h>

#include <iterator>

#include "schedule/text.hpp"

namespace unisono::schedule {
namespace {

void append_rank(std::string& text, const Schedule& schedule);
void append_messages(std::string& text, const std::vector<Schedule>& set, const Schedule& sender);

std::string_view color_of(OpKind kind) {
  switch (kind) {
    case OpKind::send:
    case OpKind::multicast:
      return "lightblue";
    case OpKind::wait:
      return "lightyellow";
    case OpKind::reduce:
      return "lightpink";
    case OpKind::copy:
      return "lightgrey";
  }
  return "white";
}

}  // namespace

std::string graphviz(const std::vector<Schedule>& set) {
  std::string text =
      "digraph schedule {\n"
      "  rankdir=TB;\n"
      "  node [shape=box, style=filled, fontname=\"monospace\", fontsize=10];\n";
  for (const Schedule& schedule : set) append_rank(text, schedule);
  for (const Schedule& schedule : set) append_messages(text, set, schedule);
  return text + "}\n";
}

namespace {

void append_rank(std::string& text, const Schedule& schedule) {
  const auto out = std::back_inserter(text);
  const int rank = schedule.rank;
  fmt::format_to(out, "  subgraph cluster_{} {{\n    label=\"rank {}\";\n", rank, rank);
  if (schedule.ops.empty()) {
    fmt::format_to(out, "    r{}_none [label=\"nothing to do\", fillcolor=white];\n", rank);
  }
  for (std::size_t id = 0; id < schedule.ops.size(); ++id) {
    fmt::format_to(out, "    r{}_{} [label=\"{}: {}\", fillcolor={}];\n", rank, id, id,
                   print_op(schedule, static_cast<OpId>(id)), color_of(schedule.ops[id].kind));
    for (const OpId before : schedule.after_of(schedule.ops[id])) {
      if (before < 0 || std::cmp_greater_equal(before, schedule.ops.size())) continue;
      fmt::format_to(out, "    r{}_{} -> r{}_{};\n", rank, before, rank, id);
    }
  }
  text += "  }\n";
}

// To every wait of the slot that the message fills.
void append_messages(std::string& text, const std::vector<Schedule>& set, const Schedule& sender) {
  for (std::size_t id = 0; id < sender.ops.size(); ++id) {
    for (const auto& [peer, slot] : sender.targets_of(sender.ops[id])) {
      for (const Schedule& receiver : set) {
        if (receiver.rank != peer) continue;
        for (std::size_t w = 0; w < receiver.ops.size(); ++w) {
          const Op& wait = receiver.ops[w];
          if (wait.kind != OpKind::wait || wait.slot != slot) continue;
          fmt::format_to(std::back_inserter(text),
                         "  r{}_{} -> r{}_{} [style=bold, color=blue, constraint=false];\n",
                         sender.rank, id, peer, w);
        }
      }
    }
  }
}

}  // namespace
}  // namespace unisono::schedule
