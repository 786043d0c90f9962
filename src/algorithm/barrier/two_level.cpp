// SPDX-License-Identifier: BSD-3-Clause
// Two levels: each host's ranks signal their leader, up a tree through shared memory; the leaders
// run a barrier among themselves; then each releases its host. Between hosts go only the inner
// barrier's signals.
//
//   P = 5 on hosts 0 1 | 2 3 | 4, inner dissemination
//   within     1 -> 0, 3 -> 2
//   between    0 > 2, 2 > 4, 4 > 0;  0 > 4, 2 > 0, 4 > 2
//   within     0 -> 1, 2 -> 3
//
// Steps: ceil(log_{l+1} of the ranks of a host) + 1, and those of the inner barrier.
// Source: Moody et al., SC 2003 (a node combines in shared memory first); Kielmann, Hofman, Bal,
// Plaat and Bhoedjang, PPoPP 1999.
#include "algorithm/two_level.hpp"

namespace unisono::algorithm::barrier {

Schedule two_level(const Shape& shape, const Parameters& parameters, int rank) {
  const two_level::Levels levels(shape);
  const int fan_in = parameters.values[1];
  const auto branch = two_level::branch(shape, levels, rank, fan_in);
  const Range signal = schedule::input(0, 0);
  Builder b(shape, rank);
  // Slots: the release (none at a leader), one a child, those among leaders.
  const bool leads = branch.parent < 0;
  if (!leads) b.slot(levels.leader(levels.host(rank)), 0);
  OpId gathered = Builder::kNone;
  for (const int child : branch.children) gathered = b.wait(b.slot(child, 0), {gathered});
  if (!leads) {
    b.send(branch.parent, branch.child_number + (levels.leads(branch.parent) ? 0 : 1), signal,
           {gathered});
    b.wait(0);
    return std::move(b).take();
  }
  std::vector<OpId> done = {gathered};
  if (levels.hosts() > 1) {
    const auto inner = two_level::inner_schedule(shape, parameters, levels, {}, levels.host(rank));
    done = two_level::embed(b, inner, {signal, signal, {gathered}}, levels, [&](int host) {
      const auto other = two_level::branch(shape, levels, levels.leader(host), fan_in);
      return static_cast<SlotId>(other.children.size());
    });
  }
  two_level::release(b, levels, rank, signal, done);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::barrier
