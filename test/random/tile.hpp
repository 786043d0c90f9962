// SPDX-License-Identifier: BSD-3-Clause
// Tile: the values of a block or vector, which repeat after a prime number of elements. So a
// reference of many megabytes takes a few thousand elements of arithmetic, and no length of a
// segment is a multiple of the period. For tests only; a value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/prng.hpp"
#include "harness/elements.hpp"
#include "random/types.hpp"

namespace unisono::test::programs {

class Tile {
 public:
  Tile() = default;
  // `most`: no element from there on is asked for.
  Tile(std::int64_t period, std::int64_t most, std::size_t size)
      : period_(std::max<std::int64_t>(1, std::min(period, most))),
        size_(size),
        bytes_(static_cast<std::size_t>(period_) * size) {}

  std::byte* data() { return bytes_.data(); }
  const std::byte* data() const { return bytes_.data(); }
  std::int64_t elements() const { return period_; }

  // Elements first .. first + count - 1 to `at`.
  void put(std::byte* at, std::int64_t first, std::int64_t count) const {
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t from = (first + done) % period_;
      const std::int64_t some = std::min(count - done, period_ - from);
      std::memcpy(at + static_cast<std::size_t>(done) * size_,
                  bytes_.data() + static_cast<std::size_t>(from) * size_,
                  static_cast<std::size_t>(some) * size_);
      done += some;
    }
  }

 private:
  std::int64_t period_ = 1;
  std::size_t size_ = 1;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(1);
};

// Random bytes, for data that is moved and not reduced. `key` is their seed.
inline Tile moved_tile(std::uint64_t key, std::size_t size, std::int64_t most) {
  Tile tile(size > 64 ? 61 : 1021, most, size);
  base::Prng prng(key);
  const std::size_t bytes = static_cast<std::size_t>(tile.elements()) * size;
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = prng.next();
    std::memcpy(tile.data() + i, &word, std::min<std::size_t>(8, bytes - i));
  }
  return tile;
}

// A rank's contribution to a reduction.
inline Tile contribution(std::uint64_t key, int type, int op, int rank, std::int64_t most) {
  const std::size_t size = size_of_type(type);
  const std::int64_t period = size > 64 ? 61 : 251;
  if (is_own_operator(op)) {
    Tile tile =
        moved_tile(key * 31 + static_cast<std::uint64_t>(rank), size, std::min(period, most));
    for (std::int64_t i = 0; i < tile.elements(); ++i) {
      tile.data()[static_cast<std::size_t>(i) * size] |= std::byte{1};  // an odd factor
    }
    return tile;
  }
  Tile tile(period, most, size);
  const auto salt = static_cast<std::int64_t>(key % 1'000'003) * 1009;
  for (std::int64_t i = 0; i < tile.elements(); ++i) {
    harness::store(type, tile.data() + static_cast<std::size_t>(i) * size,
                   harness::sample({type, op}, rank, salt + i));
  }
  return tile;
}

inline void combine_into(Tile& left, const Tile& right, int type, int op) {
  const std::size_t size = size_of_type(type);
  if (is_own_operator(op)) {
    (op == kOwnOrdered ? compose_bytes : add_bytes)(left.data(), left.data(), right.data(),
                                                    left.elements(), size);
    return;
  }
  for (std::int64_t i = 0; i < left.elements(); ++i) {
    std::byte* const at = left.data() + static_cast<std::size_t>(i) * size;
    const std::byte* const other = right.data() + static_cast<std::size_t>(i) * size;
    harness::store(type, at,
                   harness::combine(op, type, harness::load(type, at), harness::load(type, other)));
  }
}

// The contributions of ranks 0 to `last`, combined in their order.
inline Tile reduced_tile(std::uint64_t key, int type, int op, int last, std::int64_t most) {
  Tile tile = contribution(key, type, op, 0, most);
  for (int rank = 1; rank <= last; ++rank) {
    combine_into(tile, contribution(key, type, op, rank, most), type, op);
  }
  return tile;
}

}  // namespace unisono::test::programs
