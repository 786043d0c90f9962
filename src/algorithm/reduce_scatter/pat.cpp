// SPDX-License-Identifier: BSD-3-Clause
// PAT (parallel aggregated trees) backwards: every block climbs a binomial tree of its own to its
// rank, nearest ranks first. A rank sends the sums that go the same distance together, up to
// `blocks` of them in a message. So the messages to far ranks are the short ones, for any P.
//
//   P = 5         distance 1             distance 2           distance 4
//   rank r sends  blocks r-1 and r-3     block r-2            block r-4
//   to            r-1                    r-2                  r-4
//
// Steps: ceil(log2 P). Bytes: (P-1) m.
// Block b is combined in the order of ranks from b on, cyclically: the operator has to commute.
// Empty blocks are sent too, as signals. Source: Jeaugey, arXiv 2506.20252.
#include <vector>

#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/ring.hpp"
#include "algorithm/pattern/trees_of_all.hpp"
#include "algorithm/reduce_scatter/own_block.hpp"

namespace unisono::algorithm::reduce_scatter {

namespace {

// The sums of blocks, by the distance that they have to go. Those of one message lie side by side.
class PatSums {
 public:
  PatSums(Builder& builder, const Shape& shape, int rank) : b_(builder) {
    sums_.reserve(static_cast<std::size_t>(shape.ranks));
    places_.reserve(static_cast<std::size_t>(shape.ranks));
    for (int distance = 0; distance < shape.ranks; ++distance) {
      const int owner = pattern::ring_shift(shape.ranks, rank, -distance);
      sums_.push_back({input(schedule::block(shape, owner))});
      places_.push_back(sums_.back().range);
    }
  }
  Value& at(int distance) { return sums_[static_cast<std::size_t>(distance)]; }
  Range& place(int distance) { return places_[static_cast<std::size_t>(distance)]; }

  // Sums of the blocks in scratch memory from now on, one behind another.
  Range reserve(const pattern::Distances& distances, int hop) {
    std::int64_t count = 0;
    for (const int distance : distances) count += at(distance + hop).range.count;
    const Range all = b_.scratch(count);
    Range rest = all;
    for (const int distance : distances) {
      rest.count = at(distance + hop).range.count;
      place(distance + hop) = rest;
      rest.offset += rest.count;
    }
    return all;
  }
  void combine(int distance, const Value& arrived) {
    Value& sum = at(distance);
    const Range target = place(distance);
    sum = {target, b_.reduce(target, sum.range, arrived.range, {arrived.ready, sum.ready})};
  }

 private:
  Builder& b_;
  std::vector<Value> sums_;
  std::vector<Range> places_;
};

}  // namespace

Schedule pat(const Shape& shape, const Parameters& parameters, int rank) {
  const int ranks = shape.ranks;
  Builder b(shape, rank, 4 * ranks);
  PatSums sums(b, shape, rank);
  if (ranks == 1) {
    finish(b, sums.at(0), {});
    return std::move(b).take();
  }
  const int last = pattern::longest_hop(ranks);
  std::vector<Range> messages;  // hop by hop
  messages.reserve(static_cast<std::size_t>(ranks));
  for (int hop = 1; hop <= last; hop *= 2) {
    const pattern::MessagesOfHop all(ranks, hop, parameters.values[0]);
    for (int i = 0; i < all.size(); ++i) {
      const pattern::Distances message = all[i];
      const bool is_input = hop == 1 && message.size() == 1;
      messages.push_back(is_input ? sums.at(message.front() + hop).range
                                  : sums.reserve(message, hop));
    }
  }
  if (last > 1) sums.place(0) = b.scratch(sums.at(0).range.count);

  std::vector<OpId> sends, ready;
  sends.reserve(messages.size());
  // Slots: one a message, in the order of hops and distances.
  SlotId first_slot = 0;
  for (int hop = 1; hop <= last; hop *= 2) {
    const pattern::MessagesOfHop all(ranks, hop, parameters.values[0]);
    for (int i = 0; i < all.size(); ++i) {
      std::int64_t taken = 0;
      for (const int distance : all[i]) taken += sums.at(distance).range.count;
      const SlotId slot = b.slot(pattern::ring_shift(ranks, rank, hop), taken);
      ready.clear();
      for (const int distance : all[i]) {
        Value& sum = sums.at(distance + hop);
        const Range place = sums.place(distance + hop);
        if (!(sum.range == place)) sum = {place, b.copy(place, sum.range)};
        ready.push_back(sum.ready);
      }
      sends.push_back(b.send(pattern::ring_shift(ranks, rank, -hop), slot, messages[sends.size()]));
      for (const OpId before : ready) b.also_after(before);
    }
    for (int i = 0; i < all.size(); ++i) {
      const OpId arrived = b.wait(first_slot + i);
      Range rest = b.of(first_slot + i);
      for (const int distance : all[i]) {
        rest.count = sums.at(distance).range.count;
        if (hop == last) {  // only the own block is left
          finish(b, shape, rank, sums.at(0), {rest, arrived}, sends);
        } else {
          sums.combine(distance, {rest, arrived});
        }
        rest.offset += rest.count;
      }
    }
    first_slot += all.size();
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce_scatter
