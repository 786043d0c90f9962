// SPDX-License-Identifier: BSD-3-Clause
// PAT (parallel aggregated trees): every block goes down a binomial tree of its own, farthest ranks
// first, and a rank sends the blocks that go the same distance together, up to `blocks` of them in
// a message. So the messages to far ranks are the short ones, and any P is as good as another.
//
//   P = 5         distance 4     distance 2     distance 1
//   rank r sends  r              r              r and r-2
//   to            r+4            r+2            r+1
//
// Steps: ceil(log2 P). Bytes: (P-1) m.
// A message of several blocks is put together in scratch memory first. The source uses one buffer
// for all messages of a distance; here each has its slot.
// Source: Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
// arXiv 2506.20252.
#include <vector>

#include "algorithm/algorithm.hpp"
#include "algorithm/allgather/place.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/ring.hpp"
#include "algorithm/pattern/trees_of_all.hpp"

namespace unisono::algorithm::allgather {

Schedule pat(const Shape& shape, const Parameters& parameters, int rank) {
  const int ranks = shape.ranks;
  const auto origin = [&](int distance) { return pattern::ring_shift(ranks, rank, -distance); };
  Builder b(shape, rank, 4 * ranks);
  // The blocks, by the distance that they have come.
  std::vector<Value> held(static_cast<std::size_t>(ranks));
  held[0] = {own_block(shape, rank)};
  b.copy(place(shape, rank), held[0].range);
  // Slots: one a message, in the order of hops and distances.
  SlotId first_slot = 0;
  for (int hop = pattern::longest_hop(ranks); hop > 0; hop /= 2) {
    const pattern::MessagesOfHop messages(ranks, hop, parameters.values[0]);
    for (int i = 0; i < messages.size(); ++i) {
      const pattern::Distances message = messages[i];
      std::int64_t given = 0, taken = 0;
      for (const int distance : message) {
        given += held[static_cast<std::size_t>(distance)].range.count;
        taken += schedule::block(shape, origin(distance + hop)).count;
      }
      const SlotId slot = b.slot(origin(hop), taken);
      Value all = held[static_cast<std::size_t>(message.front())];
      if (message.size() > 1) {
        Range rest = b.scratch(given);
        all = {rest};
        for (const int distance : message) {
          const Value& block = held[static_cast<std::size_t>(distance)];
          rest.count = block.range.count;
          all.ready = b.copy(rest, block.range, {block.ready, all.ready});
          rest.offset += rest.count;
        }
      }
      b.send(pattern::ring_shift(ranks, rank, hop), slot, all.range, {all.ready});
    }
    for (int i = 0; i < messages.size(); ++i) {
      const OpId arrived = b.wait(first_slot + i);
      Range rest = b.of(first_slot + i);
      for (const int distance : messages[i]) {
        const Range to = place(shape, origin(distance + hop));
        rest.count = to.count;
        held[static_cast<std::size_t>(distance + hop)] = {rest, arrived};
        b.copy(to, rest, {arrived});
        rest.offset += rest.count;
      }
    }
    first_slot += messages.size();
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::allgather
