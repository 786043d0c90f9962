// SPDX-License-Identifier: BSD-3-Clause
// Two levels: each host's vectors are combined towards its leader, up a tree through shared memory;
// the leaders run an allreduce of the hosts' sums; then each leader multicasts the result in its
// host. The network carries the vectors of as many ranks as there are hosts.
//
//   P = 5 on hosts 0 1 | 2 3 | 4, inner pairwise (2 is folded onto 0)
//   within     1 -> 0: 01, 3 -> 2: 23
//   between    2 -> 0: 0123;  0 <> 4: (0123)4;  0 -> 2
//   within     0 -> 1, 2 -> 3
//
// All ranks get the same bits, because all leaders do.
// Steps: ceil(log_{l+1} of the ranks of a host) + 1, and those of the inner allreduce. Bytes: those
// of the inner one, and n.
// Source: Moody et al., SC 2003 (a node combines in shared memory first); Kielmann, Hofman, Bal,
// Plaat and Bhoedjang, PPoPP 1999.
#include "algorithm/two_level.hpp"

namespace unisono::algorithm::allreduce {

Schedule two_level(const Shape& shape, const Parameters& parameters, int rank) {
  const two_level::Levels levels(shape);
  const int fan_in = parameters.values[1];
  const auto branch = two_level::branch(shape, levels, rank, fan_in);
  const Range input = schedule::input(0, shape.count);
  const Range output = schedule::output(0, shape.count);
  Builder b(shape, rank);
  // Slots: the result (none at a leader), one a child, those among leaders.
  const bool leads = branch.parent < 0;
  if (!leads) b.slot(levels.leader(levels.host(rank)), shape.count);
  for (const int child : branch.children) b.slot(child, shape.count);
  const Value sum = two_level::combine(b, {input}, output, branch, leads ? 0 : 1);
  if (!leads) {
    give_and_take(b, branch.parent, branch.child_number + (levels.leads(branch.parent) ? 0 : 1),
                  sum, 0);
    return std::move(b).take();
  }
  std::vector<OpId> done = {sum.ready};
  if (levels.hosts() > 1) {
    const auto inner = two_level::inner_schedule(shape, parameters, levels, {.count = shape.count},
                                                 levels.host(rank));
    done = two_level::embed(b, inner, {sum.range, output, {sum.ready}}, levels, [&](int host) {
      const auto other = two_level::branch(shape, levels, levels.leader(host), fan_in);
      return static_cast<SlotId>(other.children.size());
    });
  } else if (branch.children.empty()) {
    b.copy(output, input);
  }
  two_level::release(b, levels, rank, output, done);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allreduce
