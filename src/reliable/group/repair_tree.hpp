// SPDX-License-Identifier: BSD-3-Clause
// The tree for requests of lost multicasts: a k-ary tree over the members of the group, the first
// rank of each host, with the origin at its root. Each member has one parent to ask and at most k
// children to answer. So neither requests nor acknowledgements of a large group meet at one rank. A
// member that has left is passed over: those below it ask, and answer to, those above. Members
// learn of that at different times, so two may see different trees for a moment; requests are
// repeated. One thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "reliable/group/acknowledgement.hpp"
#include "topology/host_map.hpp"

namespace unisono::reliable {

class RepairTree {
 public:
  RepairTree(topology::HostMap hosts, int arity);

  bool has(int rank) const { return hosts_.place(rank) == 0; }
  // False if the rank is no member, or had gone before.
  bool forget(int rank, Departure how);
  // Whether a member has left or is lost.
  bool has_left(int rank) const {
    return gone_ != 0 && left_[static_cast<std::size_t>(place_of(rank))];
  }

  // Not for the origin itself. The origin is asked last, even if it has left.
  int parent(int origin, int rank) const;
  bool is_leaf(int origin, int rank) const;
  std::vector<int> children(int origin, int rank) const;
  // The members known to be lost, as a number that differs for other sets of them; 0: none.
  std::uint64_t lost_set() const { return lost_set_; }
  // Whether a lost member was passed over to find that rank's children.
  bool passes_over_lost(int origin, int rank) const;
  // A number below the arity that tells most children of one parent apart.
  int number_of(int origin, int rank) const { return (relative(origin, rank) - 1) % arity_; }

 private:
  int size() const { return hosts_.hosts(); }
  int place_of(int rank) const { return hosts_.of(rank); }
  int relative(int origin, int rank) const {
    return (place_of(rank) - place_of(origin) + size()) % size();
  }
  int absolute(int origin, int place) const {
    return hosts_.first((place + place_of(origin)) % size());
  }
  // Returns whether it has passed over a lost member.
  bool add_children(int origin, int place, std::vector<int>& all) const;

  topology::HostMap hosts_;
  int arity_;
  std::vector<bool> left_;  // by place; those that are lost, too
  std::vector<bool> lost_;  // by place
  std::uint64_t lost_set_ = 0;
  int gone_ = 0;
};

}  // namespace unisono::reliable
