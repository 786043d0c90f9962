// SPDX-License-Identifier: BSD-3-Clause
// From which length on one copy by the kernel is faster than two through shared buffers. Any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace unisono::tools::tune {

// The same call with one copy and with two.
struct CopyTimes {
  int ranks = 2;
  std::int64_t bytes = 0;
  double one_ns = 0, two_ns = 0;
  double one_plus_minus = 0;
};

struct SingleCopyFrom {
  std::int64_t bytes = 0, plus_minus = 0;
};

// The least measured length from which on one copy is clearly faster. It is so at each number of
// ranks, and at all greater lengths, too. The interval reaches half way to the next lower length.
// nullopt: one copy is not clearly faster at the greatest length.
std::optional<SingleCopyFrom> single_copy_from(std::span<const CopyTimes> times);

}  // namespace unisono::tools::tune
