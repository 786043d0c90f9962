// SPDX-License-Identifier: BSD-3-Clause
// Two levels: each host's ranks give their blocks to their leader through shared memory; the
// leaders run an allgather of the hosts' blocks, which may differ in length; then each leader
// multicasts the whole vector in its host. Each block goes to another host once, not once for every
// rank there.
//
//   P = 5 on hosts 0 1 | 2 3 | 4, inner direct
//   within     1 -> 0, 3 -> 2
//   between    0 => 2 4: 0 1    2 => 0 4: 2 3    4 => 0 2: 4
//   within     0 -> 1, 2 -> 3: the whole vector
//
// Among leaders the vector is in the order of hosts. Where that is not the order of ranks, it is
// put together in scratch memory, and every rank sorts its blocks at the end.
// Steps: 2, and those of the inner allgather. Bytes: those of the inner one, and P m.
// Source: Kielmann, Hofman, Bal, Plaat and Bhoedjang, PPoPP 1999.
#include "algorithm/two_level.hpp"

#include "algorithm/allgather/place.hpp"
#include "algorithm/by_host.hpp"

namespace unisono::algorithm::allgather {

namespace {

using two_level::ByHost;

Schedule follow(const Shape& shape, const two_level::Levels& levels, const ByHost& by_host,
                int rank) {
  const int leader = levels.leader(levels.host(rank));
  Builder b(shape, rank, 3);
  const SlotId slot = b.slot(leader, whole(shape).count);
  const OpId given = b.send(leader, levels.place(rank) - 1, own_block(shape, rank));
  const OpId arrived = b.wait(slot);
  const OpId after[] = {arrived, given};
  by_host.to_output(b, b.of(slot), after);
  return std::move(b).take();
}

}  // namespace

Schedule two_level(const Shape& shape, const Parameters& parameters, int rank) {
  const two_level::Levels levels(shape);
  const ByHost by_host(shape, levels);
  if (!levels.leads(rank)) return follow(shape, levels, by_host, rank);
  const int host = levels.host(rank);
  const int size = levels.size(host);
  Builder b(shape, rank);
  // Slots: one a rank of this host but the own, those among leaders.
  const Range vector = by_host.is_sorted() ? whole(shape) : b.scratch(whole(shape).count);
  Value own{own_block(shape, rank)};
  if (size > 1 || levels.hosts() == 1) {
    own.ready = b.copy(by_host.part(vector, host, 0), own.range);
    own.range = by_host.part(vector, host);
  }
  for (int i = 1; i < size; ++i) {
    const Range block = by_host.part(vector, host, i);
    const SlotId slot = b.slot(levels.member(host, i), block.count);
    const OpId arrived = b.wait(slot);
    own.ready = b.copy(block, b.of(slot), {arrived, own.ready});
  }
  std::vector<OpId> done = {own.ready};
  if (levels.hosts() > 1) {
    const auto inner = two_level::inner_schedule(shape, parameters, levels, by_host.inner(), host);
    done = two_level::embed(b, inner, {own.range, vector, {own.ready}}, levels,
                            [&](int other) { return static_cast<SlotId>(levels.size(other) - 1); });
  }
  two_level::release(b, levels, rank, vector, done);
  if (!by_host.is_sorted()) by_host.to_output(b, vector, done);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allgather
