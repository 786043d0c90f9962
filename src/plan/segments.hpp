// SPDX-License-Identifier: BSD-3-Clause
// Segments: calls longer than the receive buffers are done in parts. A part of a call is a part of
// its vector, or of each of its blocks. These functions compute both, and the positions of a part's
// blocks in the caller's buffers. Control path; pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/bind/bind.hpp"
#include "schedule/shape.hpp"

namespace unisono::plan {

// Elements of the vector, or of the longest block, which are cut.
std::int64_t longest_vector(const schedule::Shape& whole);

// The most bytes of a segment of a call without blocks, of ranks on so many hosts whose long
// messages go by streams. Algorithms cut it into pieces of about `piece_bytes`. Streams need less
// time for each byte of a longer piece, until it leaves the cache before it is reduced or sent on.
std::int64_t longest_streamed(schedule::Collective collective, int hosts, std::int64_t piece_bytes);

// The part of the call with elements [from, from + most) of the vector, or of each block.
schedule::Shape segment_of(const schedule::Shape& whole, std::int64_t from, std::int64_t most);

// Whether in place the rank's output in a segment lies over its input in a segment before it. It
// does in a reduce-scatter where blocks that are shorter than the rank's own one come first.
bool overlaps_in_place(const schedule::Shape& whole, int rank);

// One of a rank's two buffers. places[r]: where the block for (or from) rank r begins, in elements;
// null: one block behind the other.
struct Buffer {
  enum class Side : std::uint8_t { input, output };
  int rank = 0;
  Side side = Side::input;
  const std::vector<std::int64_t>* places = nullptr;
};

// How `part`, a segment of `whole`, lies in the buffer, in elements from where the segment begins
// in its vector or blocks. Contiguous where the buffer has no blocks.
BufferLayout layout_of(const schedule::Shape& whole, const schedule::Shape& part,
                       const Buffer& buffer);

}  // namespace unisono::plan
