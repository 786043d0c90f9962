// SPDX-License-Identifier: BSD-3-Clause
// The data of the benchmark. An element depends on its rank, on the iteration (its `phase`) and on
// its index, and repeats with a prime period, so that a result that is late, shifted, doubled or of
// another rank differs; yet what is right is known without adding anything up during the run.
// Values are whole numbers small enough that every sum over the ranks is exact in the type: right
// means equal in every bit. Immutable after it is made; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arith/type.hpp"

namespace unisono::tools::bench {

// Whose elements are reduced: of a scan, those up to this rank; of an exscan, of those before it.
enum class Reduced : std::uint8_t { all, upto, before };

class Pattern {
 public:
  // `op` fits `type`, which is not a pair. `rank`: this one, for scans.
  Pattern(arith::Type type, arith::Operator op, int ranks, int rank);

  // buffer[i] = element i of `rank` in this phase, for count elements.
  void fill(int rank, std::int64_t phase, std::int64_t count, std::byte* buffer) const;

  // How many of count elements differ from what fill() would write.
  std::int64_t wrong(int rank, std::int64_t phase, std::int64_t count,
                     const std::byte* buffer) const;
  // ... from the reduction of the ranks' elements. Rank 0 has none before it.
  std::int64_t wrong_reduced(std::int64_t phase, std::int64_t count, const std::byte* buffer,
                             Reduced reduced = Reduced::all) const;

  // Block `block` of what consists of blocks is of this phase, so that no block is like another.
  static std::int64_t phase_of(int block, std::int64_t phase) { return phase + 7 * block; }

 private:
  std::size_t reduced_row(Reduced reduced) const;
  const std::byte* row(std::size_t index, std::int64_t phase) const;
  std::int64_t wrong_in_row(std::size_t index, std::int64_t phase, std::int64_t count,
                            const std::byte* buffer) const;
  bool same(const std::byte* a, const std::byte* b) const;

  arith::Type type_;
  std::size_t size_;  // of an element
  std::size_t ranks_;
  std::vector<std::byte> rows_;  // one for each rank, then one for each Reduced
};

}  // namespace unisono::tools::bench
