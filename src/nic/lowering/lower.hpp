// SPDX-License-Identifier: BSD-3-Clause
// Lowering: derives from a schedule what a rank's NIC has to do. The NIC program supports one
// pattern. It combines the own vector with those of children, in a fixed order and in place, sends
// the sum to a parent, and takes the result that comes down from the root. Any other schedule is
// refused, and the message names the op that does not fit. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "arith/type.hpp"
#include "base/result.hpp"
#include "schedule/schedule.hpp"

namespace unisono::nic {

// A rank's part in a tree.
struct Node {
  int rank = 0;
  int ranks = 0;
  int parent = -1;                  // -1: this is the root
  schedule::SlotId own_slot = 0;    // at the parent: the name of this rank's contribution there
  schedule::SlotId first_slot = 0;  // of the first child here; the other children's slots follow
  std::vector<int> children;        // ranks, in the order in which they are combined
  bool returns_values = false;      // the result itself comes down, not only the signal that it
                                    // exists
  int down_source = -1;             // the rank that sends it; -1 at the root
  bool multicasts = false;          // at the root: one packet to all
  std::vector<int> forwards;        // otherwise: the ranks to which this rank sends the result

  bool operator==(const Node&) const = default;
};

// A reduce gets a downward path that its schedule lacks: the root multicasts, without values, that
// it has the sum. Otherwise ranks would not know when a slot may be reused.
base::Result<Node> lower(const schedule::Schedule& schedule);

// For a schedule that cuts the vector into pieces, each with a tree of its own. Returns the rank's
// part in each of these trees, in the order of the pieces. No piece may be empty.
base::Result<std::vector<Node>> lower_pieces(const schedule::Schedule& schedule);

// Whether the nodes of ranks 0 .. P-1 form one tree. Each must be the child that its parent
// expects, and must get the result from a rank that sends it. Some schedules can be lowered at some
// ranks only. So a group lowers those of all ranks (they are pure and cheap) before it relies on
// any.
base::Status check_tree(std::span<const Node> nodes);

// How the program combines two vectors (enum unisono_nic_combine of tables.h), for the operators
// and types that it knows.
base::Result<std::uint32_t> lower_operator(arith::Operator op, arith::Type type);

}  // namespace unisono::nic
