// SPDX-License-Identifier: BSD-3-Clause
#include "plan/segments.hpp"

#include <algorithm>

namespace unisono::plan {
namespace {

using schedule::Block;
using schedule::Blocks;
using schedule::Collective;
using schedule::Shape;

// Collectives whose input or output consists of blocks, one for each rank.
bool has_input_blocks(Collective c) {
  return c == Collective::scatter || c == Collective::alltoall || c == Collective::reduce_scatter;
}
bool has_output_blocks(Collective c) {
  return schedule::has_blocks(c) && c != Collective::scatter && c != Collective::reduce_scatter;
}

constexpr int kPiecesOfChain = 8;  // as a chain of hosts passes a vector on
constexpr int kLeastPieces = 4;

// All counts in the order of Blocks.
std::vector<std::int64_t> counts_of(const Blocks& blocks) {
  std::vector<std::int64_t> counts;
  for (int r = 0; r < blocks.ranks(); ++r) {
    if (!blocks.are_pairs()) {
      counts.push_back(blocks.of(r).count);
      continue;
    }
    for (int to = 0; to < blocks.ranks(); ++to) counts.push_back(blocks.sent(r, to).count);
  }
  return counts;
}

std::vector<bool> receivers_of(const Blocks& blocks) {
  std::vector<bool> receivers;
  if (blocks.all_receive()) return receivers;
  for (int r = 0; r < blocks.ranks(); ++r) receivers.push_back(blocks.receives(r));
  return receivers;
}

Block block_for(const Shape& shape, const Buffer& buffer, int other) {
  if (!schedule::has_pairs(shape.collective)) return schedule::block(shape, other);
  return buffer.side == Buffer::Side::input ? schedule::sent_block(shape, buffer.rank, other)
                                            : schedule::received_block(shape, other, buffer.rank);
}

}  // namespace

std::int64_t longest_vector(const Shape& whole) {
  return whole.blocks.given() ? std::ranges::max(counts_of(whole.blocks)) : whole.count;
}

std::int64_t longest_streamed(Collective collective, int hosts, std::int64_t piece_bytes) {
  const int pieces =
      schedule::is_reduction(collective) ? std::max(hosts, kLeastPieces) : kPiecesOfChain;
  return piece_bytes * pieces;
}

Shape segment_of(const Shape& whole, std::int64_t from, std::int64_t most) {
  const auto left = [&](std::int64_t count) {
    return std::clamp<std::int64_t>(count - from, 0, most);
  };
  Shape part = whole;
  if (!whole.blocks.given()) {
    part.count = left(whole.count);
    return part;
  }
  std::vector<std::int64_t> counts = counts_of(whole.blocks);
  std::ranges::transform(counts, counts.begin(), left);
  // A part of blocks that are right is right.
  part.blocks = whole.blocks.are_pairs() ? *Blocks::of_pairs(whole.ranks, counts)
                                         : *Blocks::of_ranks(counts, receivers_of(whole.blocks));
  return part;
}

bool overlaps_in_place(const Shape& whole, int rank) {
  if (whole.collective != Collective::reduce_scatter) return false;
  const std::int64_t output = schedule::output_count(whole, rank);
  for (int r = 0; r < whole.ranks; ++r) {
    const Block block = schedule::block(whole, r);
    // A block at the very beginning lies under the output of the same segment.
    if (block.count > 0 && block.offset > 0 && block.offset < output) return true;
  }
  return false;
}

BufferLayout layout_of(const Shape& whole, const Shape& part, const Buffer& buffer) {
  BufferLayout layout;
  if (!(buffer.side == Buffer::Side::input ? has_input_blocks
                                           : has_output_blocks)(whole.collective)) {
    return layout;
  }
  std::int64_t end = 0;
  bool contiguous = true;
  for (int r = 0; r < whole.ranks; ++r) {
    const Block block = block_for(part, buffer, r);
    if (block.count == 0) continue;
    const std::int64_t place = buffer.places == nullptr
                                   ? block_for(whole, buffer, r).offset
                                   : (*buffer.places)[static_cast<std::size_t>(r)];
    contiguous = contiguous && place == end;
    end = place + block.count;
    layout.pieces.push_back({.offset = block.offset, .count = block.count, .place = place});
  }
  if (contiguous) layout.pieces.clear();
  return layout;
}

}  // namespace unisono::plan
