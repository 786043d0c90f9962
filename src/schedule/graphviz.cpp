// SPDX-License-Identifier: BSD-3-Clause
// The pictures of text.hpp. In graphviz(), ops of a rank stand in a cluster. Thin arrows are
// predecessors, bold ones messages. Messages do not push columns down (constraint=false), so the
// ranks stand in order. It accepts malformed sets: an arrow that leads nowhere is left out.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "schedule/cost.hpp"
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
    case OpKind::sum:
      return "lightpink";
    case OpKind::copy:
      return "lightgrey";
  }
  return "white";
}

// The root on top; without a root, a circle.
std::string_view layout_of(Collective collective) {
  if (!is_rooted(collective)) return "layout=circo";
  const bool to_root = collective == Collective::reduce || collective == Collective::gather;
  return to_root ? "rankdir=BT" : "rankdir=TB";
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

std::string graphviz_messages(const std::vector<Schedule>& set) {
  if (set.empty()) return "digraph messages {\n}\n";
  const Shape& shape = set.front().shape;
  const std::vector<Message> all = messages(set);
  const bool of_one_length = std::ranges::all_of(
      all, [&](const Message& m) { return m.elements == all.front().elements; });
  std::string text = fmt::format(
      "digraph messages {{\n"
      "  label=\"{}, {} ranks, {}: arrows are messages, with their step{}\";\n"
      "  {};\n"
      "  node [shape=circle, fontname=\"monospace\"];\n"
      "  edge [fontname=\"monospace\", fontsize=10];\n",
      collective_name(shape.collective), shape.ranks, print_counts(shape),
      of_one_length ? "" : ": elements", layout_of(shape.collective));
  for (int rank = 0; rank < shape.ranks; ++rank)
    fmt::format_to(std::back_inserter(text), "  {};\n", rank);
  for (const Message& m : all) {
    const std::string elements = of_one_length ? "" : fmt::format(": {}", m.elements);
    fmt::format_to(std::back_inserter(text), "  {} -> {} [label=\"{}{}\"];\n", m.source, m.target,
                   m.step, elements);
  }
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

// Draws arrows to each wait for the slot that the message fills.
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
