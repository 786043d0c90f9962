// SPDX-License-Identifier: BSD-3-Clause
// Subject: a collective to measure, with blocks of equal or unequal lengths. Unequal ones have the
// given size on the average of two, or of all. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
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

// How long unequal blocks are, where their number is even and where it is odd. halves: half the
// size, rounded down, and the rest of twice the size. zeros: nothing, and twice the size.
// one: number 1 has all but one element for each other.
enum class Uneven : std::uint8_t { halves, zeros, one };
std::optional<Uneven> uneven_from_name(std::string_view name);
std::string_view uneven_name(Uneven uneven);
std::string_view uneven_text(Uneven uneven);  // says it to users

// Elements of the block with this number: the rank's, or the sum of the pair's.
std::int64_t block_count(const Subject& subject, Uneven uneven, int number, int ranks,
                         std::int64_t count);

}  // namespace unisono::tools::bench
