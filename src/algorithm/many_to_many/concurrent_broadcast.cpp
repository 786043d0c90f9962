// SPDX-License-Identifier: BSD-3-Clause
// Concurrent broadcasts: the block of every sender goes down an f-nomial tree of its own, over the
// receivers in the order in which they follow the sender around the circle of ranks. All trees are
// under way at once, and since each begins with another rank, all ranks forward alike.
//
//   P = 5, blocks 1 0 2 0 0, receivers 0 1 4, degree 2
//   block 0, to 1 4:     0 -> 4, 0 -> 1
//   block 2, to 4 0 1:   2 -> 0, 2 -> 4;  0 -> 1
//
// Steps: ceil(log_f P), or of the receivers and the sender alone. Bytes: (P-1) m where everyone
// sends and receives. A rank takes the senders nearest below it first: who passes a block on is
// nearer to its sender, so that nobody waits in a circle. Source: many-to-many broadcast as
// concurrent multicast trees, Kumar and Kalé, ICPADS 2004, section 3, with the trees of Moody et
// al., SC 2003, section 5.2.
#include "algorithm/algorithm.hpp"
#include "algorithm/emit.hpp"
#include "algorithm/many_to_many/receivers.hpp"
#include "algorithm/pattern/fnomial.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm::many_to_many {

namespace {

class Broadcasts {
 public:
  Broadcasts(const Shape& shape, int degree) : shape_(shape), degree_(degree), receivers_(shape) {
    int senders = 0;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      senders_below_.push_back(senders);
      if (sends(rank)) ++senders;
    }
  }

  bool sends(int rank) const { return schedule::block(shape_, rank).count > 0; }

  // Slots: one a sender but the own rank, in the order of ranks.
  SlotId slot(int sender, int at) const {
    const int below = senders_below_[static_cast<std::size_t>(sender)];
    return sends(at) && at < sender ? below - 1 : below;
  }

  // The rank from which `rank` gets the block of `sender`.
  int parent(int sender, int rank) const {
    return rank_at(sender, tree_of(sender).node(place_of(sender, rank)).parent);
  }

  // Sends the block of `sender` on to the children of `rank`, the largest subtree first.
  void forward(Builder& b, int sender, int rank, Value block) const {
    const pattern::FnomialTree tree = tree_of(sender);
    const int place = place_of(sender, rank);
    for (int child = tree.node(place).children - 1; child >= 0; --child) {
      const int to = rank_at(sender, tree.child(place, child));
      b.send(to, slot(sender, to), block.range, {block.ready});
    }
  }

 private:
  // The sender has place 0, the other receivers follow.
  pattern::FnomialTree tree_of(int sender) const {
    const int others = receivers_.count() - (receivers_.contains(sender) ? 1 : 0);
    return {others + 1, degree_};
  }
  int place_of(int sender, int rank) const {
    return rank == sender ? 0 : 1 + receivers_.number_after(sender, rank);
  }
  int rank_at(int sender, int place) const {
    return place == 0 ? sender : receivers_.after(sender, place - 1);
  }

  const Shape& shape_;
  int degree_;
  Receivers receivers_;
  std::vector<int> senders_below_;  // each rank
};

}  // namespace

Schedule concurrent_broadcast(const Shape& shape, const Parameters& parameters, int rank) {
  const int ranks = shape.ranks;
  const Broadcasts broadcasts(shape, parameters.values[0]);
  const auto block = [&](int of) { return schedule::block(shape, of); };
  const bool receives = schedule::receives(shape, rank);
  const Range own = schedule::input(0, block(rank).count);
  Builder b(shape, rank, 3 * ranks);
  for (int source = 0; source < ranks && receives; ++source) {
    if (source == rank || !broadcasts.sends(source)) continue;
    b.slot(broadcasts.parent(source, rank), block(source).count);
  }
  if (broadcasts.sends(rank)) broadcasts.forward(b, rank, rank, {own});
  if (!receives) return std::move(b).take();
  b.copy(output(block(rank)), own);
  for (int source = pattern::ring_previous(ranks, rank); source != rank;
       source = pattern::ring_previous(ranks, source)) {
    if (!broadcasts.sends(source)) continue;
    const SlotId slot = broadcasts.slot(source, rank);
    const OpId arrived = b.wait(slot);
    broadcasts.forward(b, source, rank, {b.of(slot), arrived});
    b.copy(output(block(source)), b.of(slot), {arrived});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::many_to_many
