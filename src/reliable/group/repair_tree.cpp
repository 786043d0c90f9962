// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/group/repair_tree.hpp"

#include <algorithm>
#include <utility>

namespace unisono::reliable {

RepairTree::RepairTree(topology::HostMap hosts, int arity)
    : hosts_(std::move(hosts)),
      arity_(arity),
      left_(static_cast<std::size_t>(hosts_.hosts()), false) {}

void RepairTree::forget(int rank) {
  if (!has(rank) || has_left(rank)) return;
  left_[static_cast<std::size_t>(place_of(rank))] = true;
  ++gone_;
}

int RepairTree::parent(int origin, int rank) const {
  int place = relative(origin, rank);
  do {
    place = (place - 1) / arity_;
  } while (place != 0 && has_left(absolute(origin, place)));
  return absolute(origin, place);
}

bool RepairTree::is_leaf(int origin, int rank) const {
  if (arity_ * relative(origin, rank) + 1 >= size()) return true;
  return gone_ != 0 && children(origin, rank).empty();
}

std::vector<int> RepairTree::children(int origin, int rank) const {
  std::vector<int> all;
  add_children(origin, relative(origin, rank), all);
  return all;
}

void RepairTree::add_children(int origin, int place, std::vector<int>& all) const {
  const int first = arity_ * place + 1;
  for (int child = first; child < std::min(first + arity_, size()); ++child) {
    const int rank = absolute(origin, child);
    if (has_left(rank)) {
      add_children(origin, child, all);
    } else {
      all.push_back(rank);
    }
  }
}

}  // namespace unisono::reliable
