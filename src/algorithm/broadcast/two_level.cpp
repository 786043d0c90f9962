// SPDX-License-Identifier: BSD-3-Clause
// Two levels: the vector goes from the root to the leaders of the other hosts, as the inner
// broadcast does it, and from each leader to its host's ranks by one multicast through shared
// memory. No host gets the vector twice. On its own host the root leads; or, where only the first
// rank of a host can multicast to others, it hands the vector to that one.
//
//   P = 5 on hosts 0 1 | 2 3 | 4, root 3, inner flat
//   the root leads             the first lead
//   between    3 => 0 4        within     3 -> 2
//   within     3 -> 2, 0 -> 1  between    2 => 0 4
//                              within     0 -> 1
//
// Steps: those of the inner broadcast, and 1, or 2 if the root hands over. Bytes: those of the
// inner one, and n.
// Source: Petrini et al., HotI 2003 (the processes of a node share what it receives); Kielmann,
// Hofman, Bal, Plaat and Bhoedjang, PPoPP 1999.
#include "algorithm/two_level.hpp"

namespace unisono::algorithm::broadcast {

namespace {

enum class Leader { root, first };

// The vector at a leader and when it is there: its input, or the part handed over by the root.
Value given_to(Builder& b, const Shape& shape, int rank, bool is_handed) {
  if (!is_handed || rank == shape.root) return {schedule::input(0, shape.count)};
  const SlotId slot = b.slot(shape.root, shape.count);
  return {b.of(slot), b.wait(slot)};
}

}  // namespace

Schedule two_level(const Shape& shape, const Parameters& parameters, int rank) {
  const bool root_leads = static_cast<Leader>(parameters.values[1]) == Leader::root;
  const two_level::Levels levels(shape,
                                 root_leads ? two_level::Lead::root : two_level::Lead::lowest);
  const int leader = levels.leader(levels.host(rank));
  const Range output = schedule::output(0, shape.count);
  Builder b(shape, rank);
  if (rank == shape.root && leader != rank) {
    b.send(leader, 0, schedule::input(0, shape.count));
    return std::move(b).take();
  }
  // Slots: the vector from the leader. At a leader: the vector that the root hands over, and the
  // slots among leaders.
  if (leader != rank) {
    const SlotId slot = b.slot(leader, shape.count);
    const OpId arrived = b.wait(slot);
    b.copy(output, b.of(slot), {arrived});
    return std::move(b).take();
  }
  const int root_host = levels.host(shape.root);
  const bool is_handed = levels.leader(root_host) != shape.root;
  const bool has_root = levels.host(rank) == root_host;
  Value vector{output};
  if (has_root) vector = given_to(b, shape, rank, is_handed);
  std::vector<OpId> done;
  if (levels.hosts() > 1) {
    const auto inner = two_level::inner_schedule(shape, parameters, levels, {.count = shape.count},
                                                 levels.host(rank));
    done =
        two_level::embed(b, inner, {vector.range, output, {vector.ready}}, levels,
                         [&](int host) { return SlotId{is_handed && host == root_host ? 1 : 0}; });
  }
  if (!has_root) {
    two_level::release(b, levels, rank, output, done);
    return std::move(b).take();
  }
  const std::vector<OpId> arrived(is_handed ? 1 : 0, vector.ready);
  two_level::release(b, levels, rank, vector.range, arrived, shape.root);
  if (rank != shape.root) b.copy(output, vector.range, {vector.ready});
  return std::move(b).take();
}

}  // namespace unisono::algorithm::broadcast
