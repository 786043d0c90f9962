// SPDX-License-Identifier: BSD-3-Clause
// ReceiveGeometry: the sizes of a communicator's receive buffers, and their positions in its shared
// memory; and the part of a flag word that is the call's digest. All ranks compute the same.
// Values; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace unisono::plan {

inline constexpr std::int64_t kLineBytes = 64;
inline constexpr std::int64_t kLinePayload = 56;  // and 8 bytes of flag
// The ReferenceWords of a line, before the length header.
inline constexpr std::int64_t kReferenceWords = 32;

// The other bits of a flag word are the operation's sequence number.
inline constexpr int kDigestBits = 24;
inline constexpr std::uint64_t kDigestMask = (1U << kDigestBits) - 1;

// Bytes in whole lines, an odd number of them.
inline constexpr std::int64_t odd_lines(std::int64_t bytes) {
  return ((bytes + kLineBytes - 1) / kLineBytes | 1) * kLineBytes;
}

// The size classes of a communicator's receive buffers. `middle`: where it has several hosts, or
// two ranks.
enum class SizeClass : std::uint8_t { small, middle, bulk };
inline constexpr std::array kSizeClasses = {SizeClass::small, SizeClass::middle, SizeClass::bulk};

struct ReceiveGeometry {
  int ranks = 1;
  int slot_indexes = 2;         // a power of two
  std::int64_t lines = 1;       // per buffer
  std::int64_t data_bytes = 0;  // per buffer, a multiple of kLineBytes

  // An odd number of lines. Otherwise the flags of successive operations would fall into the same
  // few sets of a cache. At a power of two an exchange of two ranks takes twice as long.
  std::int64_t receive_buffer_bytes() const { return odd_lines(lines * kLineBytes + data_bytes); }
  // A rank's buffers, of all slot indices, lie together; this is the distance from one rank's to
  // the next.
  std::int64_t rank_stride() const { return odd_lines(slot_indexes * receive_buffer_bytes()); }
  std::int64_t total_bytes() const { return rank_stride() * ranks; }
  // Whether calls may use this size class.
  bool given() const { return lines > 0; }
  bool operator==(const ReceiveGeometry&) const = default;
};

// For each size class its own.
template <class T>
struct BySize : std::array<T, kSizeClasses.size()> {
  using Base = std::array<T, kSizeClasses.size()>;
  T& operator[](SizeClass size) { return Base::operator[](static_cast<std::size_t>(size)); }
  const T& operator[](SizeClass size) const {
    return Base::operator[](static_cast<std::size_t>(size));
  }
};
using Geometries = BySize<ReceiveGeometry>;

}  // namespace unisono::plan
