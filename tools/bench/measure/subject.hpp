// SPDX-License-Identifier: BSD-3-Clause
// Subject: a collective to measure, with blocks of equal or unequal lengths. An unequal block has
// half the given size if its rank (or the sum of the pair's ranks) is even, and one and a half
// times the size if odd. Half of an odd number of elements is rounded down. Values; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "schedule/shape.hpp"

namespace unisono::tools::bench {

struct Subject {
  schedule::Collective collective = schedule::Collective::barrier;
  bool unequal = false;

  Subject() = default;
  // A collective alone has equal blocks.
  Subject(schedule::Collective of, bool with_unequal_blocks = false)
      : collective(of), unequal(with_unequal_blocks) {}
  bool operator==(const Subject&) const = default;

  std::string_view name() const;
};

// The collectives of the C API, in the order of measurement.
std::span<const Subject> subjects();

// Elements of the block with this number: the rank's, or the sum of the pair's.
std::int64_t block_count(const Subject& subject, int number, std::int64_t count);

}  // namespace unisono::tools::bench
