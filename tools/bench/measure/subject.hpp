// SPDX-License-Identifier: BSD-3-Clause
// Subject: what the benchmark measures: a collective, with blocks of equal or of unequal lengths.
// Unequal ones: the block of a rank, or of a pair of ranks, has half as many elements as the size
// says where the rank (the sum of the two) is even, and one and a half times as many where it is
// odd; of an odd number of elements the half is rounded down. Values; any thread.
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

// Those that the C API has, in the order in which they are measured.
std::span<const Subject> subjects();

// Elements of the block with this number: the rank's, or the sum of the pair's.
std::int64_t block_count(const Subject& subject, int number, std::int64_t count);

}  // namespace unisono::tools::bench
