// SPDX-License-Identifier: BSD-3-Clause
// Eight keyed hashes of a long payload, side by side: a fast way for user space to cover it by a
// packet's tag. Word n of the payload (64 bits, little-endian) belongs to lane n mod 8. A lane is
// SipHash-2-4 under the job's key. Its first word is kLaneMark + lane, which no header begins with.
// Then follow the lane's words, with zeros behind the payload's end. The tag covers the eight
// results and the header, which has the length. Collisions of two payloads need one in a lane, so a
// forged packet passes with the same probability as with one hash of 64 bits. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/key.hpp"

namespace unisono::wire {

inline constexpr std::size_t kLanes = 8;
inline constexpr std::uint64_t kLaneMark = 0xfffffffffffffff0U;

using PayloadDigest = std::array<std::uint64_t, kLanes>;

PayloadDigest payload_digest(const Key& key, std::span<const std::byte> payload);
// The same, one word at a time: for big-endian processors and for tests.
PayloadDigest payload_digest_by_words(const Key& key, std::span<const std::byte> payload);

}  // namespace unisono::wire
