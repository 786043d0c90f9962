// SPDX-License-Identifier: BSD-3-Clause
// The payload of a get's packet: the target offset at the asking rank, and the number of bytes.
// Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace unisono::reliable {

struct GetTarget {
  std::uint64_t place = 0;
  std::uint64_t bytes = 0;
  bool operator==(const GetTarget&) const = default;
};

inline constexpr std::size_t kGetPayloadBytes = 16;
using GetPayload = std::array<std::byte, kGetPayloadBytes>;

// Little-endian, as all on the wire.
inline GetPayload encode_get(const GetTarget& target) {
  GetPayload payload{};
  for (std::size_t i = 0; i < 8; ++i) {
    payload[i] = static_cast<std::byte>(target.place >> (8 * i));
    payload[8 + i] = static_cast<std::byte>(target.bytes >> (8 * i));
  }
  return payload;
}

// Empty if it is not as long as that.
inline std::optional<GetTarget> decode_get(std::span<const std::byte> payload) {
  if (payload.size() != kGetPayloadBytes) return std::nullopt;
  GetTarget target;
  for (std::size_t i = 0; i < 8; ++i) {
    target.place |= static_cast<std::uint64_t>(payload[i]) << (8 * i);
    target.bytes |= static_cast<std::uint64_t>(payload[8 + i]) << (8 * i);
  }
  return target;
}

}  // namespace unisono::reliable
