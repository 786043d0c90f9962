// SPDX-License-Identifier: BSD-3-Clause
// The data of the benchmark. An element depends on its rank, on the iteration (its `phase`) and on
// its index, and repeats with a prime period. So a result that is late, shifted, doubled or of
// another rank differs. Yet the right result is known without adding anything up during the run.
// Values are whole numbers small enough that every sum over the ranks is exact in the type, so
// results are compared bit by bit. Immutable after it is made; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arith/type.hpp"

namespace unisono::tools::bench {

// The ranks whose elements are reduced: for a scan up to this rank, for an exscan before it.
enum class Reduced : std::uint8_t { all, upto, before };

class Pattern {
 public:
  // `op` fits `type`, which is not a pair. `rank`: this one, for scans.
  Pattern(arith::Type type, arith::Operator op, int ranks, int rank);

  // buffer[i] = element i of `rank` in this phase, for count elements.
  void fill(int rank, std::int64_t phase, std::int64_t count, std::byte* buffer) const;

  // The number of elements that differ from those that fill() would write.
  std::int64_t wrong(int rank, std::int64_t phase, std::int64_t count,
                     const std::byte* buffer) const;
  // ... from the reduction of the ranks' elements. Rank 0 has none before it.
  std::int64_t wrong_reduced(std::int64_t phase, std::int64_t count, const std::byte* buffer,
                             Reduced reduced = Reduced::all) const;

  // The phase of block `block`, which differs between blocks.
  static std::int64_t phase_of(int block, std::int64_t phase) { return phase + 7 * block; }

 private:
  std::size_t reduced_row(Reduced reduced) const;
  const std::byte* row(std::size_t index, std::int64_t phase) const;
  std::int64_t wrong_in_row(std::size_t index, std::int64_t phase, std::int64_t count,
                            const std::byte* buffer) const;
  bool same(const std::byte* a, const std::byte* b) const;

  arith::Type type_;
  std::size_t size_;  // size of an element
  std::size_t ranks_;
  std::vector<std::byte> rows_;  // one for each rank, then one for each Reduced
};

}  // namespace unisono::tools::bench
