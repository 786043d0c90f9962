// SPDX-License-Identifier: BSD-3-Clause
// Buckets of a histogram of times: four to each power of two, so that a bucket's bounds differ by
// at most a quarter. Pure; any thread. The reader of files (tools/profile) uses the same.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace unisono::profile {

// The last one begins at 17 hours and takes all that is longer.
inline constexpr std::size_t kBuckets = 180;

constexpr std::size_t bucket_of(std::int64_t ns) {
  const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(0, ns));
  if (value < 4) return static_cast<std::size_t>(value);
  const int width = static_cast<int>(std::bit_width(value));
  const std::size_t quarter = (value >> (width - 3)) & 3U;
  return std::min(kBuckets - 1, static_cast<std::size_t>(width - 2) * 4 + quarter);
}

// The shortest time of a bucket.
constexpr std::int64_t bucket_begin(std::size_t bucket) {
  if (bucket < 4) return static_cast<std::int64_t>(bucket);
  return static_cast<std::int64_t>(4 + bucket % 4) << (bucket / 4 - 1);
}

}  // namespace unisono::profile
