// SPDX-License-Identifier: BSD-3-Clause
#include "nic/port/tree_ports.hpp"

#include <algorithm>
#include <utility>

#include "nic/port/segments.hpp"

namespace unisono::nic {

using base::Status;

std::uint64_t TreeCut::packets(int piece) const {
  return Segments::pieces(words_of(bytes(piece)), UNISONO_NIC_WORDS_MAX);
}

Status TreePorts::add(const Node& node, std::unique_ptr<Membership> member,
                      std::optional<std::uint32_t> waiter) {
  Tree tree;
  if (waiter) {
    UNISONO_ASSIGN(tree.wakes, WakeRing::open(std::move(member->wakes.at(*waiter)), *waiter));
  }
  UNISONO_ASSIGN(tree.port, Port::open(member->row, member->mapping.memory()));
  tree.member = std::move(member);
  trees_.push_back(std::move(tree));
  nodes_.push_back(node);
  return base::success();
}

bool TreePorts::has_room(const TreeCut& cut) const {
  for (int piece = 0; piece < cut.pieces; ++piece) {
    const Tree& tree = trees_[static_cast<std::size_t>(piece)];
    if (tree.port->next() + cut.packets(piece) > tree.taken + tree.port->depth()) return false;
  }
  return true;
}

TreePorts::Ends TreePorts::ends() const {
  Ends ends = {};
  for (std::size_t t = 0; t < trees_.size(); ++t) ends[t] = trees_[t].port->next();
  return ends;
}

base::Result<int> TreePorts::repair(const Ends& ends, std::int64_t now_ns, std::int64_t delay_ns) {
  int asked = 0;
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    UNISONO_ASSIGN(const int of_tree, trees_[t].port->repair(ends[t], now_ns, delay_ns));
    asked += of_tree;
  }
  return asked;
}

void TreePorts::Tree::take(std::uint64_t operation) {
  taken_later |= std::uint32_t{1} << (operation - taken);
  while ((taken_later & 1) != 0) {
    taken_later >>= 1;
    ++taken;
  }
}

}  // namespace unisono::nic
