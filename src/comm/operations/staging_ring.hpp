// SPDX-License-Identifier: BSD-3-Clause
// StagingRing: blocks of one piece of memory, one behind the other and round again. So a block lies
// where no core has read for a long round: inner caches no longer hold what was there, and to store
// it waits for no other core (plan::Rotation does the same for receive buffers). Blocks mostly
// become free in the order in which they were taken; one that does not holds up those behind it.
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace unisono::comm {

class StagingRing {
 public:
  static constexpr std::size_t kMostBlocks = 512;

  // From then on it hands out these bytes. Their place is not 0.
  void begin(std::int64_t place, std::int64_t bytes) {
    place_ = place;
    bytes_ = bytes;
    blocks_.resize(kMostBlocks);
  }
  bool has_memory() const { return place_ != 0; }
  std::int64_t place() const { return place_; }
  std::int64_t bytes() const { return bytes_; }
  bool holds(std::int64_t place) const { return place >= place_ && place < place_ + bytes_; }

  // The place of a new block; 0: the next bytes are in use. completed(sequence): whether readers
  // are through with operation `sequence`.
  template <typename Completed>
  std::int64_t take(std::int64_t bytes, const Completed& completed) {
    while (!fits(bytes)) {
      if (count_ == 0 || !is_free(oldest(), completed)) return 0;
      first_ = (first_ + 1) % kMostBlocks;
      --count_;
    }
    if (next_ + bytes > bytes_) next_ = 0;
    Block& block = blocks_[(first_ + count_) % kMostBlocks];
    block = {.at = next_, .is_back = false, .sequence = 0};
    ++count_;
    next_ += bytes;
    return place_ + block.at;
  }
  // It is free as soon as its readers are through with operation `sequence`; 0: now.
  void give_back_after(std::int64_t place, std::uint64_t sequence) {
    for (std::size_t i = count_; i > 0; --i) {
      Block& block = blocks_[(first_ + i - 1) % kMostBlocks];
      if (block.at != place - place_) continue;
      block.is_back = true;
      block.sequence = sequence;
      return;
    }
  }
  template <typename Completed>
  bool is_all_free(const Completed& completed) const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (!is_free(blocks_[(first_ + i) % kMostBlocks], completed)) return false;
    }
    return true;
  }

 private:
  struct Block {
    std::int64_t at = 0;
    bool is_back = false;
    std::uint64_t sequence = 0;
  };

  const Block& oldest() const { return blocks_[first_]; }
  template <typename Completed>
  static bool is_free(const Block& block, const Completed& completed) {
    return block.is_back && (block.sequence == 0 || completed(block.sequence));
  }
  // Used are those from the oldest on, to the next one.
  bool fits(std::int64_t bytes) const {
    if (count_ == 0) return bytes <= bytes_;
    if (count_ == kMostBlocks) return false;
    if (oldest().at >= next_) return next_ + bytes <= oldest().at;
    return next_ + bytes <= bytes_ || bytes <= oldest().at;
  }

  std::int64_t place_ = 0, bytes_ = 0;
  std::vector<Block> blocks_;
  std::size_t first_ = 0, count_ = 0;  // of those that may be in use
  std::int64_t next_ = 0;              // where the next one begins, if it fits there
};

}  // namespace unisono::comm
