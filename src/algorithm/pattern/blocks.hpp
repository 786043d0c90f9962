// SPDX-License-Identifier: BSD-3-Clause
// Blocks: n elements cut into P consecutive blocks whose lengths differ by at most one: the first
// n mod P of them are one longer. Some are empty when n < P. HalvingRange: a run of elements that
// can be halved, the lower half the longer one. Segments: blocks that follow one another through a
// chain or a tree. Pure values; any thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace unisono::algorithm::pattern {

class Blocks {
 public:
  // elements >= 0, blocks >= 1.
  Blocks(std::int64_t elements, int blocks)
      : length_(elements / blocks), longer_(elements % blocks) {}

  std::int64_t offset(int block) const {
    return block * length_ + std::min<std::int64_t>(block, longer_);
  }
  std::int64_t count(int block) const { return length_ + (block < longer_ ? 1 : 0); }

 private:
  std::int64_t length_, longer_;
};

// The number of segments for so many elements: as many as wanted, but none of them empty; one for
// no elements.
inline int segments_of(std::int64_t elements, int wanted) {
  return static_cast<int>(std::clamp<std::int64_t>(elements, 1, wanted));
}

struct HalvingRange {
  std::int64_t offset = 0, count = 0;

  HalvingRange lower_half() const { return {offset, count - count / 2}; }
  HalvingRange upper_half() const { return {offset + count - count / 2, count / 2}; }
};

}  // namespace unisono::algorithm::pattern
