// SPDX-License-Identifier: BSD-3-Clause
// f-nomial split: the vector is halved s times, which leaves a piece of it to each of 2^s groups of
// ranks; the groups combine their pieces in f-nomial trees of their own at the same time, and the
// tops send them to the root, which puts them together. Less to combine a rank where combining is
// what costs.
//
//   P = 5, splits 1, degree 2, root 0: the lower half of the vector, and the upper
//   halve    0 <-> 2, 1 -> 0 and 2;  3 <-> 4
//            0: (x0 op x1) op x2     3: x3 op x4     (lower halves)
//            2: (x0 op x1) op x2     4: x3 op x4     (upper halves)
//   trees    3 -> 0                  4 -> 2
//   join     2 -> 0: the upper half
//
// Groups are made of every 2^s-th position, so that partners in the halving are neighbours and the
// order of ranks is kept; in the source they are halves of the machine. Up to 2^s - 1 surplus ranks
// share a position with a neighbour. Another root shifts the ranks cyclically; if shape.ordered,
// the tops send to it where it is.
// Steps: s + ceil(log_f floor(P/2^s)) + 1, s at most log2 P. Bytes: n.
// Source: Moody et al., SC 2003, section 5.3, after van de Geijn.
#include "algorithm/pattern/cube.hpp"
#include "algorithm/pattern/fnomial.hpp"
#include "algorithm/reduce/halving.hpp"

namespace unisono::algorithm::reduce {

namespace {

class Split {
 public:
  Split(const Shape& shape, int splits, int degree)
      : shape_(shape),
        splits_(std::min(splits, pattern::FoldedCube(shape.ranks).dimensions())),
        members_(shape.ranks >> splits_),
        root_(shape.ordered ? shape.root : 0),
        shift_(shape.ordered ? 0 : shape.root),
        paired_(shape.ranks, members_ << splits_, root_),
        halving_(shape, paired_, splits_, shift_),
        tree_(members_, degree) {}

  Schedule build(int rank) const {
    const int at = pattern::ring_shift(shape_.ranks, rank, -shift_);
    const int position = paired_.position(at);
    const int member = position >> splits_;
    const pattern::TreeNode node = tree_.node(member);
    const bool is_root = at == root_;
    Builder b(shape_, rank, 3 * splits_ + 2 * node.children + 4 + (is_root ? 2 << splits_ : 0));
    if (!paired_.leads(at)) {
      halving_.give_away(b, at);
      return std::move(b).take();
    }
    const Sums sums =
        is_root ? Sums{schedule::output(0, shape_.count), 0} : halving_.scratch_sums(b, position);
    Value sum = halving_.run(b, position, sums);
    // Slots, after those of the halving: one for each child, then at the root one for each group
    // with another top.
    for (int child = 0; child < node.children; ++child) {
      b.slot(real_leader(tree_.child(member, child), group(position)), sum.range.count);
    }
    sum = combine_slots(b, sum, sum.range, halving_.slots(position), node.children);
    if (member > 0) {
      const SlotId slot = halving_.slots(node.parent << splits_ | group(position));
      sum.ready = b.send(real_leader(node.parent, group(position)), slot + node.child_number,
                         sum.range, {sum.ready});
    } else if (!is_root) {
      b.send(shape_.root, piece_slot(group(position)), sum.range, {sum.ready});
    }
    if (is_root) join(b, sums, sum.ready);
    return std::move(b).take();
  }

 private:
  int group(int position) const { return position & ((1 << splits_) - 1); }
  int leader(int member, int group) const { return paired_.leader(member << splits_ | group); }
  int real_leader(int member, int group) const { return halving_.real(leader(member, group)); }

  // The root's slot for the piece of a group.
  SlotId piece_slot(int group_number) const {
    const int position = paired_.position(root_);
    const bool is_top = position >> splits_ == 0;
    const SlotId first = halving_.slots(position) + tree_.node(position >> splits_).children;
    return first + group_number - (is_top && group(position) < group_number ? 1 : 0);
  }

  // Takes the other pieces, once nothing reads the output any more.
  void join(Builder& b, const Sums& output, OpId ready) const {
    for (int group = 0; group < 1 << splits_; ++group) {
      if (leader(0, group) == root_) continue;
      const pattern::HalvingRange piece = halving_.piece(group, splits_);
      const SlotId slot = b.slot(real_leader(0, group), piece.count);
      const OpId arrived = b.wait(slot);
      b.copy(output.at(piece), b.of(slot), {arrived, ready});
    }
  }

  const Shape& shape_;
  int splits_, members_;  // members of a group
  int root_, shift_;      // the root as a rank of `paired_`
  pattern::PairedRanks paired_;
  Halving halving_;
  pattern::FnomialTree tree_;
};

}  // namespace

Schedule fnomial_split(const Shape& shape, const Parameters& parameters, int rank) {
  if (shape.ranks == 1) {
    Builder b(shape, rank, 1);
    b.copy(schedule::output(0, shape.count), schedule::input(0, shape.count));
    return std::move(b).take();
  }
  return Split(shape, parameters.values[0], parameters.values[1]).build(rank);
}

}  // namespace unisono::algorithm::reduce
