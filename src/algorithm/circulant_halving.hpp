// SPDX-License-Identifier: BSD-3-Clause
// CirculantHalving: a reduce-scatter on a circulant graph. In each round a rank sends the partial
// sums of the upper half of the blocks it has left to the rank that many places above, until only
// its own block is left. Used by one build function of reduce_scatter/ or allreduce/, and dropped.
#pragma once

#include <vector>

#include "algorithm/block_run.hpp"
#include "algorithm/pattern/circulant.hpp"
#include "algorithm/pattern/ring.hpp"

namespace unisono::algorithm {

// `RunOf`: the blocks of so many neighbouring ranks, run_of(first, ranks) -> BlockRun.
template <typename RunOf>
class CirculantHalving {
 public:
  // At least two ranks.
  CirculantHalving(Builder& builder, int ranks, int rank, RunOf run_of)
      : b_(builder), ranks_(ranks), rank_(rank), run_of_(run_of), skips_(ranks) {}

  // The slots at a rank: those of the first round, two if the run of blocks goes beyond the last
  // rank, then one a round.
  int slots(int at) const { return first_slots(at) + skips_.rounds() - 1; }

  // The two parts of the own block, and the ops that read the input and precede neither of them.
  struct Halves {
    Value received, own;
    std::vector<OpId> sends;
  };
  Halves run() {
    const int rounds = skips_.rounds();
    const int half = skips_.at(rounds - 1);
    const int to = pattern::ring_shift(ranks_, rank_, half);
    const BlockRun given = run_of_(to, ranks_ - half);
    Halves result;
    SlotId slot_there = 0;
    given.for_each_part([&](const schedule::Block& part) {
      result.sends.push_back(b_.send(to, slot_there++, input(part)));
    });
    if (rounds == 1) {
      const BlockRun own = run_of_(rank_, 1);
      result.received = next_arrival(to, own.count());  // the only other rank
      result.own = {input(own.only_part())};
      return result;
    }
    sums_ = b_.scratch(count_of(half));
    combine_input(half);
    for (int k = rounds - 2; k >= 0; --k) {
      const int skip = skips_.at(k);
      const int above = pattern::ring_shift(ranks_, rank_, skip);
      const int below = pattern::ring_shift(ranks_, rank_, -skip);
      const int blocks = skips_.at(k + 1) - skip;
      const std::int64_t kept = count_of(skip);
      b_.send(above, first_slots(above) + rounds - 2 - k,
              first_of(behind(sums_, kept), count_of(skip + blocks) - kept), {ready_});
      const Value arrived = next_arrival(below, count_of(blocks));
      const Range target = first_of(sums_, arrived.range.count);
      if (k == 0) {
        result.received = arrived;
        result.own = {target, ready_};
        return result;
      }
      ready_ = b_.reduce(target, arrived.range, target, {arrived.ready, ready_});
    }
    return result;
  }

 private:
  int first_slots(int at) const {
    return run_of_(at, ranks_ - skips_.at(skips_.rounds() - 1)).is_one_part() ? 1 : 2;
  }
  // The elements of the first blocks from the own one on.
  std::int64_t count_of(int blocks) const { return run_of_(rank_, blocks).count(); }

  Value next_arrival(int source, std::int64_t count) {
    const SlotId slot = b_.slot(source, count);
    return {b_.of(slot), b_.wait(slot)};
  }

  // The first round: the sums of `half` blocks, of which the last gets nothing if P is odd.
  void combine_input(int half) {
    const int received = ranks_ - half;
    const int from = pattern::ring_shift(ranks_, rank_, -half);
    if (received < half) {
      const int last = pattern::ring_shift(ranks_, rank_, received);
      const std::int64_t before = count_of(received);
      ready_ = b_.copy(first_of(behind(sums_, before), count_of(half) - before),
                       input(run_of_(last, 1).only_part()));
    }
    Range rest = sums_;
    run_of_(rank_, received).for_each_part([&](const schedule::Block& part) {
      const Value arrived = next_arrival(from, part.count);
      const Range target = first_of(rest, part.count);
      ready_ = b_.reduce(target, arrived.range, input(part), {arrived.ready, ready_});
      rest = behind(rest, part.count);
    });
  }

  Builder& b_;
  int ranks_, rank_;
  RunOf run_of_;
  pattern::CirculantSkips skips_;
  Range sums_;                   // of the blocks from the own one on
  OpId ready_ = Builder::kNone;  // the last op that wrote them
};

}  // namespace unisono::algorithm
