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

#include <algorithm>

#include "algorithm/allgather/place.hpp"

namespace unisono::algorithm::allgather {

namespace {

// The vector in the order of hosts.
class ByHost {
 public:
  ByHost(const Shape& shape, const two_level::Levels& levels) : shape_(shape), levels_(levels) {
    for (int host = 0; host < levels.hosts(); ++host) {
      std::int64_t count = 0;
      for (int i = 0; i < levels.size(host); ++i) count += block_of(host, i).count;
      counts_.push_back(count);
    }
  }

  bool is_sorted() const { return !shape_.hosts.given() || shape_.hosts.are_neighbours(); }

  // The allgather of the leaders.
  Shape inner() const {
    if (std::ranges::all_of(counts_, [&](std::int64_t count) { return count == counts_[0]; })) {
      return {.count = counts_[0]};
    }
    return {.blocks = *schedule::Blocks::of_ranks(counts_)};
  }
  // A host's part of the vector.
  Range part(Range vector, int host) const {
    for (int before = 0; before < host; ++before) {
      vector.offset += counts_[static_cast<std::size_t>(before)];
    }
    vector.count = counts_[static_cast<std::size_t>(host)];
    return vector;
  }
  // A rank's part of it.
  Range part(Range vector, int host, int place) const {
    vector = part(vector, host);
    for (int i = 0; i < place; ++i) vector.offset += block_of(host, i).count;
    vector.count = block_of(host, place).count;
    return vector;
  }

  // output = vector, in the order of ranks; after all of `after`.
  void sort(Builder& b, Range vector, const std::vector<OpId>& after) const {
    const auto copy = [&](Range target, Range source) {
      b.copy(target, source);
      for (const OpId before : after) b.also_after(before);
    };
    if (is_sorted()) return copy(whole(shape_), vector);
    Range source = vector;
    for (int host = 0; host < levels_.hosts(); ++host) {
      for (int i = 0; i < levels_.size(host); ++i) {
        source.count = block_of(host, i).count;
        copy(place(shape_, levels_.member(host, i)), source);
        source.offset += source.count;
      }
    }
  }

 private:
  schedule::Block block_of(int host, int place) const {
    return schedule::block(shape_, levels_.member(host, place));
  }

  const Shape& shape_;
  const two_level::Levels& levels_;
  std::vector<std::int64_t> counts_;  // of each host's blocks
};

Schedule follow(const Shape& shape, const two_level::Levels& levels, const ByHost& by_host,
                int rank) {
  const int leader = levels.leader(levels.host(rank));
  Builder b(shape, rank, 3);
  const SlotId slot = b.slot(leader, whole(shape).count);
  const OpId given = b.send(leader, levels.place(rank) - 1, own_block(shape, rank));
  const OpId arrived = b.wait(slot);
  by_host.sort(b, b.of(slot), {arrived, given});
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
    done = two_level::embed(b, inner, {own.range, vector, own.ready}, levels,
                            [&](int other) { return static_cast<SlotId>(levels.size(other) - 1); });
  }
  two_level::release(b, levels, rank, vector, done);
  if (!by_host.is_sorted()) by_host.sort(b, vector, done);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allgather
