// SPDX-License-Identifier: BSD-3-Clause
// Pairwise all-to-all: P - 1 steps, in each of which a rank sends to one and receives from one; the
// next step begins when the message of this one is there. At powers of two the two are the same
// rank. No rank and no link is ever busy with more than one message each way: for long blocks.
//
//   P = 4 (exchange)   step 1: 0 <> 1, 2 <> 3    2: 0 <> 2, 1 <> 3    3: 0 <> 3, 1 <> 2
//   P = 5 (shift)      step s: r sends to r + s, receives from r - s (mod 5)
//
// Steps: P-1. Bytes: (P-1) m.
// A rank needs to know the counts of what it sends and receives only: slots are one a rank, also
// for empty blocks. Empty blocks are not sent, which both ends know. In place, a block is
// overwritten once it is sent. Source: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005,
// section 4.3 (long messages).
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"

namespace unisono::algorithm::alltoall {

namespace {

struct Peer {
  OpId sent = Builder::kNone;     // the block to it
  OpId arrived = Builder::kNone;  // the block from it
};

bool is_power_of_two(int ranks) { return (ranks & (ranks - 1)) == 0; }

}  // namespace

Schedule pairwise(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const auto sent = [&](int to) { return schedule::sent_block(shape, rank, to); };
  const auto received = [&](int from) { return schedule::received_block(shape, from, rank); };
  Builder b(shape, rank, 3 * ranks);
  for (int source = 0; source < ranks; ++source) {
    if (source != rank) b.slot(source, received(source).count);
  }
  b.copy(output(received(rank)), input(sent(rank)));

  std::vector<Peer> peers(static_cast<std::size_t>(ranks));
  const auto peer = [&](int of) -> Peer& { return peers[static_cast<std::size_t>(of)]; };
  // A block is copied once it has arrived and, in place, once the block that lay there is sent.
  const auto copy_from = [&](int from) {
    if (received(from).count == 0) return;
    b.copy(output(received(from)), b.of(slot_of(from, rank)),
           {peer(from).arrived, peer(from).sent});
  };
  OpId before = Builder::kNone;  // the arrival of the step before
  for (int step = 1; step < ranks; ++step) {
    const bool exchange = is_power_of_two(ranks);
    const int to = exchange ? rank ^ step : (rank + step) % ranks;
    const int from = exchange ? rank ^ step : (rank - step + ranks) % ranks;
    if (sent(to).count > 0) {
      peer(to).sent = b.send(to, slot_of(rank, to), input(sent(to)), {before});
    }
    if (received(from).count > 0) {
      before = peer(from).arrived = b.wait(slot_of(from, rank), {before});
    }
    // A rank exchanges with the same peer at distance s and P - s; at the later step both messages
    // are complete.
    if (exchange || ranks - step <= step) copy_from(from);
    if (!exchange && ranks - step < step) copy_from(to);
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::alltoall
