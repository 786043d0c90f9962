// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/group/repair_tree.hpp"

#include <algorithm>
#include <utility>

namespace unisono::reliable {
namespace {

// The finalizer of splitmix64: sums of such numbers of different sets differ.
std::uint64_t mixed(std::uint64_t number) {
  number *= 0x9e3779b97f4a7c15U;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9U;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebU;
  return number ^ (number >> 31);
}

}  // namespace

RepairTree::RepairTree(topology::HostMap hosts, int arity)
    : hosts_(std::move(hosts)),
      arity_(arity),
      left_(static_cast<std::size_t>(hosts_.hosts()), false),
      lost_(left_) {}

bool RepairTree::forget(int rank, Departure how) {
  if (!has(rank) || has_left(rank)) return false;
  const auto place = static_cast<std::size_t>(place_of(rank));
  left_[place] = true;
  ++gone_;
  if (how == Departure::lost) {
    lost_[place] = true;
    lost_set_ += mixed(place + 1);
  }
  return true;
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

bool RepairTree::passes_over_lost(int origin, int rank) const {
  std::vector<int> children;
  return lost_set_ != 0 && add_children(origin, relative(origin, rank), children);
}

bool RepairTree::add_children(int origin, int place, std::vector<int>& all) const {
  bool passes_over_lost = false;
  const int first = arity_ * place + 1;
  for (int child = first; child < std::min(first + arity_, size()); ++child) {
    const int rank = absolute(origin, child);
    if (has_left(rank)) {
      passes_over_lost |= lost_[static_cast<std::size_t>(place_of(rank))];
      passes_over_lost |= add_children(origin, child, all);
    } else {
      all.push_back(rank);
    }
  }
  return passes_over_lost;
}

}  // namespace unisono::reliable
