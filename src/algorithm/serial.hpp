// SPDX-License-Identifier: BSD-3-Clause
// Serial: the common part of the rows `serial` and `exact-serial` of the collectives whose results
// differ from rank to rank. All send their vectors to rank 0, which alone applies the operator, in
// the order of ranks: ((x0 op x1) op x2) op ..., or each result by one sum step. Only algorithm
// files use it; any thread with its own Builder.
#pragma once

#include <optional>
#include <vector>

#include "algorithm/emit.hpp"

namespace unisono::algorithm::serial {

// The sums of the first vectors, x0 op ... op xr, at rank 0: slot r - 1 holds xr. One after another
// in the same scratch memory.
class Prefixes {
 public:
  // `input` is x0.
  Prefixes(Builder& b, bool is_exact, const Range& input)
      : b_(b), is_exact_(is_exact), sum_{input}, operands_{input} {}

  // The sum of the vectors so far.
  Value sum() const { return sum_; }

  // If sums are exact, makes x0 alone a sum: that changes some NaNs and zeros.
  void round_first() {
    if (is_exact_) sum_ = {scratch(), b_.sum(scratch(), operands_)};
  }

  // Adds the vector of the next rank, once `read`, which reads the sum so far, is done.
  void add(OpId read) {
    const Range next = b_.of(static_cast<SlotId>(operands_.size() - 1));
    const OpId arrived = b_.wait(next.slot);
    operands_.push_back(next);
    const OpId summed = is_exact_
                            ? b_.sum(scratch(), operands_, {arrived, sum_.ready, read})
                            : b_.reduce(scratch(), sum_.range, next, {arrived, sum_.ready, read});
    sum_ = {scratch(), summed};
  }

 private:
  const Range& scratch() {
    if (!scratch_) scratch_ = b_.scratch(operands_.front().count);
    return *scratch_;
  }

  Builder& b_;
  bool is_exact_;
  Value sum_;
  std::vector<Range> operands_;
  std::optional<Range> scratch_;
};

}  // namespace unisono::algorithm::serial
