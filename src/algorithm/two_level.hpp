// SPDX-License-Identifier: BSD-3-Clause
// Two levels: what the algorithms `two-level` have in common. Of each host, one rank is the leader:
// the root on its own host (or not, if the algorithm says so), elsewhere the lowest rank. Within a
// host ranks deal with their leader through shared memory; among the leaders runs the schedule of
// another algorithm of the same collective, the inner one, as if they were all there is. So what
// goes between hosts is what the inner algorithm sends for as many ranks as there are hosts. Only
// algorithm files use it; any thread with its own Builder.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::two_level {

// The ranks by host. Where the shape names none, all are on one.
class Levels {
 public:
  explicit Levels(const Shape& shape, bool root_leads = true)
      : shape_(shape), root_leads_(root_leads) {}

  int hosts() const { return shape_.hosts.given() ? shape_.hosts.hosts() : 1; }
  int host(int rank) const { return shape_.hosts.given() ? shape_.hosts.of(rank) : 0; }
  int size(int host) const;
  // Ranks of a host are at places 0, 1, ..., ascending.
  int place(int rank) const { return shape_.hosts.given() ? shape_.hosts.place(rank) : rank; }
  int member(int host, int place) const;

  int leader_place(int host) const;
  int leader(int host) const { return member(host, leader_place(host)); }
  bool leads(int rank) const { return leader(host(rank)) == rank; }

 private:
  const Shape& shape_;
  bool root_leads_;
};

// A rank in the tree in which its host's ranks combine towards their leader. Where the order of
// ranks counts and the leader is not the lowest, that tree is flat.
struct Branch {
  int parent = -1;       // a rank; -1 at the leader
  int child_number = 0;  // which child of its parent
  std::vector<int> children;
  int lower = 0;  // so many of them, the first, come before this rank in the order of ranks
};
Branch branch(const Shape& shape, const Levels& levels, int rank, int fan_in);
// own op child op child ..., in `target`, from the slots `first` on; in the order of ranks where
// the branch keeps it.
Value combine(Builder& b, Value own, Range target, const Branch& branch, SlotId first);

// The inner schedule for the leader of a host, of a shape with a rank for each host. `inner` is
// complete but for what all such shapes have in common.
Schedule inner_schedule(const Shape& shape, const Parameters& parameters, const Levels& levels,
                        Shape inner, int host);

// Where an inner schedule finds its input and puts its output. They may coincide, as in a call in
// place. From the op `ready` on, both may be touched, and the others may be told of this host.
struct Seat {
  Range input, output;
  OpId ready = Builder::kNone;
};
// Appends the inner schedule to that of its leader. first_slot(host): the first of the inner slots
// at that host's leader; here, it is the next one. Returns the ops that nothing inner comes after:
// after these all is done.
std::vector<OpId> embed(Builder& b, const Schedule& inner, const Seat& seat, const Levels& levels,
                        const std::function<SlotId(int host)>& first_slot);

// From a leader to slot 0 of all others of its host, one multicast; after all of `after`. Not to
// the rank `except`, if there is one.
void release(Builder& b, const Levels& levels, int leader, Range value, std::span<const OpId> after,
             int except = -1);

// Why reductions cannot be done in two levels: they keep the order of ranks only where hosts do,
// and the inner algorithm does. nullptr if they can.
const char* breaks_order(const Shape& shape, const Parameters& parameters);
inline constexpr std::string_view kKeepsOrder =
    "operators that do not commute need hosts whose ranks follow one another, and an inner "
    "algorithm that keeps the order";

}  // namespace unisono::algorithm::two_level
