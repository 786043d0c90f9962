// SPDX-License-Identifier: BSD-3-Clause
// Bruck's all-to-all: blocks travel together. In step k a rank sends 2^k ranks upwards, in one
// message, all blocks that have bit k in the distance they have to go: its own ones and those that
// came to it in earlier steps. Few messages, but a block moves once for each bit of its distance:
// for short blocks and many ranks.
//
//   P = 5: what rank r sends, by distance           to
//   step 0   1 (own), 3 (own)                       r + 1
//   step 1   2 (own), 3 (came in step 0)            r + 2
//   step 2   4 (own)                                r + 4
//
// Steps: ceil(log2 P). Bytes: m P/2 ceil(log2 P) at the most.
// Blocks go from the slots in which they came into the next message and, in the end, to their
// places: there is no rotation of the whole vector. In place, the output is written once all is
// sent. Source: Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8(11), 1997, section 3; Thakur,
// Rabenseifner and Gropp, IJHPCA 19(1), 2005, section 4.3.
#include "algorithm/algorithm.hpp"
#include "algorithm/block_run.hpp"
#include "algorithm/pattern/dissemination.hpp"
#include "algorithm/pattern/distance_bits.hpp"

namespace unisono::algorithm::alltoall {

namespace {

constexpr int kMaxSteps = 31;

// Where the blocks are that this rank holds, by the distance they have to go.
class Held {
 public:
  Held(const Builder& b, const Shape& shape, int rank) : b_(b), shape_(shape), rank_(rank) {}

  void came(int step, OpId arrived) { arrived_[step] = arrived; }

  // The blocks of distances first .. end - 1 before `step`, if they are one run.
  Value run(int first, int end, int step) const {
    const std::int64_t m = shape_.count;
    const int last = pattern::last_move_before(first, step);
    if (last < 0) {
      const int to = (rank_ + first) % shape_.ranks;
      return {schedule::input(to * m, m)};
    }
    const std::int64_t before = pattern::distances_with_bit(first, last) * m;
    return {first_of(behind(b_.of(last), before), (end - first) * m), arrived_[last]};
  }

 private:
  const Builder& b_;
  const Shape& shape_;
  int rank_;
  OpId arrived_[kMaxSteps] = {};
};

// The blocks that leave in `step`, one after another, after `before`.
Value message_of(Builder& b, const Held& held, const Shape& shape, int step, OpId before) {
  const int first = 1 << step;
  const int first_end = pattern::run_end(shape.ranks, first, step);
  const std::int64_t count = pattern::distances_with_bit(shape.ranks, step) * shape.count;
  if (Value only = held.run(first, first_end, step); only.range.count == count) return only;
  const Range message = b.scratch(count);
  Range rest = message;
  for (int distance = first, end = 0; distance < shape.ranks; distance = end) {
    if ((distance >> step) % 2 == 0) {
      end = distance + (1 << step);
      continue;
    }
    end = pattern::run_end(shape.ranks, distance, step);
    const Value run = held.run(distance, end, step);
    before = b.copy(first_of(rest, run.range.count), run.range, {run.ready, before});
    rest = behind(rest, run.range.count);
  }
  return {message, before};
}

}  // namespace

Schedule bruck(const Shape& shape, const Parameters&, int rank) {
  const int ranks = shape.ranks;
  const std::int64_t m = shape.count;
  const int steps = pattern::dissemination_steps(ranks);
  Builder b(shape, rank, 3 * ranks + 3 * steps);
  Held held(b, shape, rank);
  OpId sent = Builder::kNone;
  for (int step = 0; step < steps; ++step) {
    // Slots: one for each step. A send comes after that of the step before, and so after all reads.
    const SlotId slot = b.slot(pattern::dissemination_source(ranks, rank, step),
                               pattern::distances_with_bit(ranks, step) * m);
    const Value message = message_of(b, held, shape, step, sent);
    sent = b.send(pattern::dissemination_target(ranks, rank, step), slot, message.range,
                  {message.ready, sent});
    held.came(step, b.wait(slot));
  }
  b.copy(schedule::output(rank * m, m), schedule::input(rank * m, m));
  for (int distance = 1; distance < ranks; ++distance) {
    const Value block = held.run(distance, distance + 1, steps);
    const int from = (rank - distance + ranks) % ranks;
    b.copy(schedule::output(from * m, m), block.range, {block.ready, sent});
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::alltoall
