// SPDX-License-Identifier: BSD-3-Clause
// Two levels: each host's ranks give their blocks to their leader through shared memory; a host's
// blocks go over the network in one message, as the inner gather of the leaders sends them. The
// root leads its own host, and its blocks come straight to their places.
//
//   P = 5 on hosts 0 1 | 2 3 | 4, root 3, inner linear
//   within     1 -> 0, 2 -> 3
//   between    0 -> 3: 0 1    4 -> 3: 4
//
// Among leaders the vector is in the order of hosts. Where that is not the order of ranks, the root
// puts it together in scratch memory and sorts it at the end.
// Steps: 1, and those of the inner gather. Bytes: m, or those of the inner one.
// Source: Kielmann, Hofman, Bal, Plaat and Bhoedjang, PPoPP 1999.
#include "algorithm/by_host.hpp"

namespace unisono::algorithm::gather {

namespace {

// The blocks of a leader's host in `part`, as far as the leader does not have them there.
Value collect(Builder& b, const two_level::Levels& levels, const two_level::ByHost& by_host,
              Range part, int host, Range own) {
  const int top = levels.leader_place(host);
  Value all{part};
  for (int i = 0; i < levels.size(host); ++i) {
    const Range place = by_host.part_of_host(part, host, i);
    if (i == top) {
      all.ready = b.copy(place, own, {all.ready});
      continue;
    }
    const SlotId slot = b.slot(levels.member(host, i), place.count);
    const OpId arrived = b.wait(slot);
    all.ready = b.copy(place, b.of(slot), {arrived, all.ready});
  }
  return all;
}

}  // namespace

Schedule two_level(const Shape& shape, const Parameters& parameters, int rank) {
  const two_level::Levels levels(shape);
  const two_level::ByHost by_host(shape, levels);
  const int host = levels.host(rank);
  const int leader = levels.leader(host);
  const Range own = schedule::input(0, schedule::block(shape, rank).count);
  Builder b(shape, rank);
  if (leader != rank) {
    b.send(leader, slot_of(levels.place(rank), levels.leader_place(host)), own);
    return std::move(b).take();
  }
  // Slots: one a rank of this host but the own, those among leaders.
  const bool is_root = rank == shape.root;
  Range vector = schedule::output(0, schedule::whole_count(shape));
  if (is_root && !by_host.is_sorted()) vector = b.scratch(vector.count);
  Value blocks{own};
  if (levels.size(host) > 1 || levels.hosts() == 1) {
    const Range part = is_root ? by_host.part(vector, host) : b.scratch(by_host.count(host));
    blocks = collect(b, levels, by_host, part, host, own);
  }
  std::vector<OpId> done = {blocks.ready};
  if (levels.hosts() > 1) {
    const auto inner = two_level::inner_schedule(shape, parameters, levels, by_host.inner(), host);
    done = two_level::embed(b, inner, {blocks.range, vector, {blocks.ready}}, levels,
                            [&](int other) { return static_cast<SlotId>(levels.size(other) - 1); });
  }
  if (is_root && !by_host.is_sorted()) by_host.to_output(b, vector, done);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::gather
