// SPDX-License-Identifier: BSD-3-Clause
// Buffers: the receive buffers of a size class, as prices need them. Values; any thread.
#pragma once

#include <array>
#include <cstdint>

namespace unisono::select {

struct Buffers {
  std::int64_t bytes = 0;  // of one; 0: there are none of this size
  int slot_indexes = 0;    // so many operations may be under way; 0: calls in a row have no price
};

// From the shortest to the longest. A call that is longer than all goes through the last, in
// segments.
using BuffersBySize = std::array<Buffers, 3>;

}  // namespace unisono::select
