// SPDX-License-Identifier: BSD-3-Clause
// Lowering: what a rank's NIC has to know of a schedule, read off the schedule itself. The NIC
// program can do one thing: combine the own vector with those of children, in a fixed order and in
// place, send the sum to a parent, and take the result that comes down from the root. A schedule
// that does anything else is refused, and the message says which op it is that does not fit. Pure;
// any thread.
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
  schedule::SlotId first_slot = 0;  // of the first child here; those of the others follow
  std::vector<int> children;        // ranks, in the order in which they are combined
  bool returns_values = false;      // what comes down is the result, and not just that it is there
  int down_source = -1;             // who sends it; -1 at the root
  bool multicasts = false;          // at the root: one packet to all
  std::vector<int> forwards;        // otherwise: whom this rank sends the result on to

  bool operator==(const Node&) const = default;
};

// A reduce is given a way down that its schedule lacks: the root multicasts, without values, that
// it has the sum. Only so do ranks know when a place may be used again.
base::Result<Node> lower(const schedule::Schedule& schedule);

// A schedule that cuts the vector into pieces, each of which goes by a tree of its own: the rank's
// part in each of these trees, in the order of the pieces. None of them may be empty.
base::Result<std::vector<Node>> lower_pieces(const schedule::Schedule& schedule);

// Whether the nodes of ranks 0 .. P-1 are one tree: each is the child that its parent takes it for,
// and hears the result from a rank that sends it. Some schedules can be lowered at some ranks only,
// so a group lowers those of all ranks (they are pure and cheap) before it relies on any.
base::Status check_tree(std::span<const Node> nodes);

// How the program combines two vectors (enum unisono_nic_combine of tables.h), for the operators
// and types that it knows.
base::Result<std::uint32_t> lower_operator(arith::Operator op, arith::Type type);

}  // namespace unisono::nic
