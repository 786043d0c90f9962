// SPDX-License-Identifier: BSD-3-Clause
// Two levels: each host's vectors are combined towards its leader, up a tree through shared memory;
// the leaders' sums are combined by an inner reduction, so that one vector a host goes over the
// network. The root leads its own host, and the result is where it belongs.
//
//   P = 5 on hosts 0 1 | 2 3 | 4, root 3, inner serial
//   within     1 -> 0: 01, 2 -> 3: 23
//   between    0 4 -> 3: ((01)(23))4
//
// Where the order of ranks counts, the ranks of a host have to follow one another, and on the
// root's host all send to the root itself, which then stands between its operands.
// Steps: ceil(log_{l+1} of the ranks of a host), and those of the inner reduction. Bytes: n, or
// those of the inner one.
// Source: Moody et al., SC 2003 (a node combines in shared memory first); Kielmann, Hofman, Bal,
// Plaat and Bhoedjang, PPoPP 1999.
#include "algorithm/two_level.hpp"

namespace unisono::algorithm::reduce {

Schedule two_level(const Shape& shape, const Parameters& parameters, int rank) {
  const two_level::Levels levels(shape);
  const int fan_in = parameters.values[1];
  const auto branch = two_level::branch(shape, levels, rank, fan_in);
  const Range input = schedule::input(0, shape.count);
  const Range output = schedule::output(0, shape.count);
  Builder b(shape, rank);
  // Slots: one a child, those among leaders.
  for (const int child : branch.children) b.slot(child, shape.count);
  Value sum{input};
  if (!branch.children.empty()) {
    const Range target = rank == shape.root ? output : b.scratch(shape.count);
    sum = two_level::combine(b, sum, target, branch, 0);
  }
  if (branch.parent >= 0) {
    b.send(branch.parent, branch.child_number, sum.range, {sum.ready});
  } else if (levels.hosts() > 1) {
    const auto inner = two_level::inner_schedule(shape, parameters, levels, {.count = shape.count},
                                                 levels.host(rank));
    two_level::embed(b, inner, {sum.range, output, {sum.ready}}, levels, [&](int host) {
      const auto other = two_level::branch(shape, levels, levels.leader(host), fan_in);
      return static_cast<SlotId>(other.children.size());
    });
  } else if (branch.children.empty()) {
    b.copy(output, input);
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce
