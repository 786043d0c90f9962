// SPDX-License-Identifier: BSD-3-Clause
// Two levels: the blocks of a host go over the network in one message, as the inner scatter of the
// leaders sends them; each leader gives its host's ranks theirs through shared memory. The root
// leads its own host, whose blocks it sends from where they are.
//
//   P = 5 on hosts 0 1 | 2 3 | 4, root 3, inner linear
//   between    3 -> 0: 0 1    3 -> 4: 4
//   within     3 -> 2, 0 -> 1
//
// Among leaders the vector is in the order of hosts. Where that is not the order of ranks, the root
// puts it together in scratch memory.
// Steps: 1, and those of the inner scatter. Bytes: those of the inner one, and the blocks of the
// other ranks of a host.
// Source: Kielmann, Hofman, Bal, Plaat and Bhoedjang, PPoPP 1999.
#include "algorithm/by_host.hpp"

namespace unisono::algorithm::scatter {

namespace {

Schedule follow(const Shape& shape, int leader, int rank) {
  Builder b(shape, rank, 2);
  const SlotId slot = b.slot(leader, schedule::block(shape, rank).count);
  const OpId arrived = b.wait(slot);
  b.copy(schedule::output(0, b.of(slot).count), b.of(slot), {arrived});
  return std::move(b).take();
}

// The scatter among leaders: this host's blocks in `blocks`, after the ops that it returns.
std::vector<OpId> among_leaders(Builder& b, const Shape& shape, const Parameters& parameters,
                                const two_level::Levels& levels, const two_level::ByHost& by_host,
                                int host, Range blocks) {
  const bool has_root = host == levels.host(shape.root);
  Value vector{schedule::input(0, schedule::whole_count(shape))};
  if (has_root) vector = by_host.from_ranks(b, vector);
  const auto inner = two_level::inner_schedule(shape, parameters, levels, by_host.inner(), host);
  const Range own = has_root ? by_host.part(vector.range, host) : blocks;
  return two_level::embed(b, inner, {vector.range, own, {vector.ready}}, levels,
                          [](int) { return SlotId{0}; });
}

}  // namespace

Schedule two_level(const Shape& shape, const Parameters& parameters, int rank) {
  const two_level::Levels levels(shape);
  const two_level::ByHost by_host(shape, levels);
  const int host = levels.host(rank);
  if (!levels.leads(rank)) return follow(shape, levels.leader(host), rank);
  // Slots: those among leaders.
  const bool is_root = rank == shape.root;
  Builder b(shape, rank);
  Range blocks;
  if (!is_root) {
    blocks = levels.size(host) > 1 ? b.scratch(by_host.count(host))
                                   : schedule::output(0, by_host.count(host));
  }
  std::vector<OpId> done;
  if (levels.hosts() > 1) {
    done = among_leaders(b, shape, parameters, levels, by_host, host, blocks);
  }
  const auto give = [&](int place, const auto& emit) {
    const int member = levels.member(host, place);
    if (is_root) {
      emit(member, input(schedule::block(shape, member)));
      return;
    }
    emit(member, by_host.part_of_host(blocks, host, place));
    for (const OpId before : done) b.also_after(before);
  };
  for (int i = 0; i < levels.size(host); ++i) {
    if (levels.member(host, i) == rank) continue;
    give(i, [&](int member, Range block) { b.send(member, 0, block); });
  }
  if (is_root || levels.size(host) > 1) {
    give(levels.place(rank),
         [&](int, Range block) { b.copy(schedule::output(0, block.count), block); });
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::scatter
