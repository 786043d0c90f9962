// SPDX-License-Identifier: BSD-3-Clause
// Two levels: the common part of the algorithms `two-level`. One rank of each host is the leader:
// the root on its own host (unless the algorithm says otherwise), elsewhere the lowest rank, or the
// highest in scans. Within a host, ranks exchange data with their leader through shared memory.
// Among the leaders runs the inner schedule: that of another algorithm of the same collective (in
// scans, an exscan), as if there were no other ranks. So hosts exchange what the inner algorithm
// sends for as many ranks as there are hosts. Only algorithm files use it; any thread with its own
// Builder.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::two_level {

// The leader of a host: the root on its host, if there is one, and elsewhere the lowest rank;
// always the lowest; always the highest.
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

// A rank in the tree in which its host's ranks combine towards their leader. If the order of ranks
// counts and the leader is not the lowest, the tree is flat.
struct Branch {
  int parent = -1;       // a rank; -1 at the leader
  int child_number = 0;  // which child of its parent
  std::vector<int> children;
  int lower = 0;  // the number of children that come before this rank in the order of ranks
};
Branch branch(const Shape& shape, const Levels& levels, int rank, int fan_in);
// own op child op child ..., in `target`, from the slots `first` on; in the order of ranks where
// the branch keeps it.
Value combine(Builder& b, Value own, Range target, const Branch& branch, SlotId first);

// The inner schedule for the leader of a host, of a shape with one rank for each host. `inner`
// lacks only the fields that are the same in all such shapes.
Schedule inner_schedule(const Shape& shape, const Parameters& parameters, const Levels& levels,
                        Shape inner, int host);

// The input and output of an inner schedule. They may coincide, as in a call in place. After all of
// `ready`, both may be accessed, and data of this host may be sent to the others.
struct InnerBuffers {
  Range input, output;
  std::vector<OpId> ready;
};
// The rank that executes an inner rank, and the first of the inner slots there.
struct Cast {
  std::function<int(int inner)> rank;
  std::function<SlotId(int inner)> first_slot;
  bool has_slots = false;  // the inner slots are there already
};
// Appends the schedule of an inner rank to that of the rank that executes it. The next slot of that
// rank is the first inner slot, unless it has them already. Copies onto themselves are left out.
// Returns the last inner ops: when they are done, the inner schedule is done.
std::vector<OpId> embed(Builder& b, const Schedule& inner, const InnerBuffers& buffers,
                        const Cast& cast);
// The same among the leaders: their ranks are those of hosts.
std::vector<OpId> embed(Builder& b, const Schedule& inner, const InnerBuffers& buffers,
                        const Levels& levels, const std::function<SlotId(int host)>& first_slot);

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
