// SPDX-License-Identifier: BSD-3-Clause
// Circulant broadcast: the vector is cut into segments, and in each round every rank sends one
// segment to the rank one skip above and gets one from the rank one skip below. The skips 1, ...,
// ceil(P/4), ceil(P/2) take turns. After the first ceil(log2 P) rounds, a further segment costs one
// further round. No algorithm with one message a round needs fewer, and any P is as good.
//
//   P = 5, root 0, 3 segments; segment: sender > receiver
//   round 0, skip 2    0: 0>2
//   round 1, skip 3    1: 0>3
//   round 2, skip 1    2: 0>1    0: 2>3    1: 3>4
//   round 3, skip 2    1: 4>1    2: 0>2    0: 2>4
//   round 4, skip 3    0: 3>1    1: 4>2    2: 0>3    2: 1>4
//
// Steps: at most s - 1 + ceil(log2 P), s the segments. Bytes: n (s - 1 + ceil(log2 P)) / s at the
// root.
// A rank finds its rounds alone, in O(log P) (pattern/circulant.hpp). A segment that the source
// sends to a rank again in the last rounds is left out.
// Source: Träff, arXiv 2407.18004.
#include "algorithm/pattern/circulant.hpp"
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/pattern/blocks.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::broadcast {

Schedule circulant(const Shape& shape, const Parameters& parameters, int rank) {
  const int ranks = shape.ranks;
  if (ranks == 1) return Builder(shape, rank, 0).take();
  const int segments = pattern::segments_of(shape.count, parameters.values[0]);
  const pattern::Blocks blocks(shape.count, segments);
  const pattern::CirculantBroadcast rounds(ranks, segments);
  const int place = pattern::ring_shift(ranks, rank, -shape.root);
  std::vector<int> own_received, own_sent;
  const std::span<const int> received = rounds.received(place, own_received);
  const std::span<const int> sent = rounds.sent(place, own_sent);
  Builder b(shape, rank, 4 * segments);
  // Slots: one a segment, where they are received.
  std::vector<Value> value(static_cast<std::size_t>(segments));
  for (int i = 0; i < segments; ++i) {
    value[static_cast<std::size_t>(i)] = {schedule::input(blocks.offset(i), blocks.count(i))};
  }
  if (rank != shape.root) {
    std::vector<int> source(static_cast<std::size_t>(segments));
    int turn = rounds.turn(0);
    for (int i = 0; i < rounds.rounds(); ++i, turn = rounds.turn_after(turn)) {
      const int segment = received[static_cast<std::size_t>(i)];
      if (segment < 0) continue;
      source[static_cast<std::size_t>(segment)] =
          pattern::ring_shift(ranks, rank, -rounds.skip_of(turn));
    }
    for (int i = 0; i < segments; ++i) {
      b.slot(source[static_cast<std::size_t>(i)], blocks.count(i));
    }
  }
  int unplaced = -1;  // the segment that came last: it is sent on before it is copied
  const auto place_segment = [&] {
    if (unplaced < 0) return;
    const Value& arrived = value[static_cast<std::size_t>(unplaced)];
    b.copy(schedule::output(blocks.offset(unplaced), blocks.count(unplaced)), arrived.range,
           {arrived.ready});
    unplaced = -1;
  };
  int turn = rounds.turn(0);
  for (int i = 0; i < rounds.rounds(); ++i, turn = rounds.turn_after(turn)) {
    const auto round = static_cast<std::size_t>(i);
    if (sent[round] >= 0) {
      const Value& segment = value[static_cast<std::size_t>(sent[round])];
      b.send(pattern::ring_shift(ranks, rank, rounds.skip_of(turn)), sent[round], segment.range,
             {segment.ready});
    }
    place_segment();
    if (received[round] >= 0) {
      unplaced = received[round];
      value[static_cast<std::size_t>(unplaced)] = {b.of(unplaced), b.wait(unplaced)};
    }
  }
  place_segment();
  return std::move(b).take();
}

}  // namespace unisono::algorithm::broadcast
