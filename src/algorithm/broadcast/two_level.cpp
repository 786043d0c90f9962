// SPDX-License-Identifier: BSD-3-Clause
// Two levels: the vector goes from the root to the leaders of the other hosts, as the inner
// broadcast does it, and from each leader to its host's ranks by one multicast through shared
// memory. The root leads its own host, so that no host gets the vector twice.
//
//   P = 5 on hosts 0 1 | 2 3 | 4, root 3, inner flat
//   between    3 => 0 4
//   within     3 -> 2, 0 -> 1
//
// Steps: those of the inner broadcast, and 1. Bytes: those of the inner one, and n.
// Source: Petrini et al., HotI 2003 (the processes of a node share what it receives); Kielmann,
// Hofman, Bal, Plaat and Bhoedjang, PPoPP 1999.
#include "algorithm/two_level.hpp"

namespace unisono::algorithm::broadcast {

Schedule two_level(const Shape& shape, const Parameters& parameters, int rank) {
  const two_level::Levels levels(shape);
  const int leader = levels.leader(levels.host(rank));
  const Range input = schedule::input(0, shape.count);
  const Range output = schedule::output(0, shape.count);
  Builder b(shape, rank);
  // Slots: the vector from the leader, or those among leaders.
  if (leader != rank) {
    const SlotId slot = b.slot(leader, shape.count);
    const OpId arrived = b.wait(slot);
    b.copy(output, b.of(slot), {arrived});
    return std::move(b).take();
  }
  std::vector<OpId> done;
  if (levels.hosts() > 1) {
    const auto inner = two_level::inner_schedule(shape, parameters, levels, {.count = shape.count},
                                                 levels.host(rank));
    done = two_level::embed(b, inner, {input, output}, levels, [](int) { return SlotId{0}; });
  }
  if (rank == shape.root) {
    two_level::release(b, levels, rank, input, {});
  } else {
    two_level::release(b, levels, rank, output, done);
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::broadcast
