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

class Pattern {
 public:
  // `op` fits `type`, which is not a pair.
  Pattern(arith::Type type, arith::Operator op, int ranks);

  // buffer[i] = element i of `rank` in this phase, for count elements.
  void fill(int rank, std::int64_t phase, std::int64_t count, std::byte* buffer) const;

  // How many of count elements differ from what fill() would write.
  std::int64_t wrong(int rank, std::int64_t phase, std::int64_t count,
                     const std::byte* buffer) const;
  // ... from the reduction of all ranks' elements.
  std::int64_t wrong_reduced(std::int64_t phase, std::int64_t count, const std::byte* buffer) const;

 private:
  const std::byte* row(std::size_t index, std::int64_t phase) const;
  std::int64_t wrong_in_row(std::size_t index, std::int64_t phase, std::int64_t count,
                            const std::byte* buffer) const;
  bool same(const std::byte* a, const std::byte* b) const;

  arith::Type type_;
  std::size_t size_;  // of an element
  std::size_t ranks_;
  std::vector<std::byte> rows_;  // one for each rank, then the reduced one
};

}  // namespace unisono::tools::bench
