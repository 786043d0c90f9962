// SPDX-License-Identifier: BSD-3-Clause
// The order of ops. An op comes after its predecessors, and a wait after the send that fills its
// slot. Every engine keeps the transitive closure of these two. The order in which a rank's ops are
// listed is one legal order, not a promise. It counts for the absence of deadlock only, because a
// caller may execute the ops one after another.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "check/form.hpp"

namespace unisono::check {

// A matrix of bits, row by row.
class BitMatrix {
 public:
  BitMatrix(std::size_t rows, std::size_t columns)
      : words_((columns + 63) / 64), bits_(rows * words_) {}

  bool test(std::size_t row, std::size_t column) const {
    return (bits_[row * words_ + column / 64] >> (column % 64) & 1) != 0;
  }
  void set(std::size_t row, std::size_t column) {
    bits_[row * words_ + column / 64] |= std::uint64_t{1} << (column % 64);
  }
  // row |= other
  void merge(std::size_t row, std::size_t other) {
    for (std::size_t w = 0; w < words_; ++w) bits_[row * words_ + w] |= bits_[other * words_ + w];
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

// All ops of the set: each rank's in their listed order, and each wait after its send. nullopt,
// with a report, if there is no such order.
std::optional<std::vector<OpAt>> run_order(std::span<const Schedule> set, const Links& links,
                                           Report& report);

// Row b, column a: op a of this rank comes before its op b, by predecessors alone.
BitMatrix order_by_predecessors(const Schedule& schedule);

// The same, by messages as well. When a multicast's message arrives, everything before the
// multicast is done. But its source may still be in use, because another target's message may be on
// its way.
BitMatrix order_by_messages(std::span<const Schedule> set, const Links& links,
                            std::span<const OpAt> run, int rank);

// Row r, column s: rank r cannot end before rank s has begun.
BitMatrix end_after_begin(std::span<const Schedule> set, const Links& links,
                          std::span<const OpAt> run);

}  // namespace unisono::check
