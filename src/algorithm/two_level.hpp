// SPDX-License-Identifier: BSD-3-Clause
// Two levels: what the algorithms `two-level` have in common. Of each host, one rank is the leader:
// the root on its own host (or not, if the algorithm says so), elsewhere the lowest rank, or the
// highest in scans. Within a host ranks deal with their leader through shared memory; among the
// leaders runs the schedule of another algorithm of the same collective (in scans, an exscan), the
// inner one, as if they were all there is. So what goes between hosts is what the inner algorithm
// sends for as many ranks as there are hosts. Only algorithm files use it; any thread with its own
// Builder.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::two_level {

// Who leads: the root on its host, if there is one, and elsewhere the lowest rank; always the
// lowest; always the highest.
enum class Lead { root, lowest, highest };

// The ranks by host. Where the shape names none, all are on one.
class Levels {
 public:
  explicit Levels(const Shape& shape, Lead lead = Lead::root) : shape_(shape), lead_(lead) {}

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
  Lead lead_;
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
// place. After all of `ready`, both may be touched, and the others may be told of this host.
struct Seat {
  Range input, output;
  std::vector<OpId> ready;
};
// Who plays an inner rank, and the first of the inner slots there.
struct Cast {
  std::function<int(int inner)> rank;
  std::function<SlotId(int inner)> first_slot;
};
// Appends an inner schedule to that of the rank that plays its rank, whose next slot is its first.
// Copies that would touch nothing are left out. Returns the ops that nothing inner comes after:
// after these all is done.
std::vector<OpId> embed(Builder& b, const Schedule& inner, const Seat& seat, const Cast& cast);
// The same among the leaders: their ranks are those of hosts.
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
