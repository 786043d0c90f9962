// SPDX-License-Identifier: BSD-3-Clause
// The ring of a connection: memory of the receiver into which one sender writes frames. A frame
// fills the next slot, and its last word is its number, on which the receiver polls. A short
// payload stands right before the trailer, so that one write of one packet carries both. A longer
// payload is written to the next piece before, and the slot after it. A payload of any size is cut
// into frames. The sender keeps a ring of the same layout, from which it sends.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono::transport {

struct VerbsTrailer {
  std::uint64_t offset;  // of the payload in the receiver's region
  std::uint64_t flag;    // kNoFlag: none
  std::uint64_t value;
  std::uint32_t bytes;
  std::uint32_t forward;
  std::uint64_t number;  // counts from 1
};
static_assert(sizeof(VerbsTrailer) == 40);

inline constexpr std::uint64_t kVerbsSlots = 32;
inline constexpr std::size_t kVerbsSlotBytes = 1024;
inline constexpr std::uint64_t kVerbsPieces = 8;
inline constexpr std::size_t kVerbsPieceBytes = std::size_t{64} << 10;
inline constexpr std::size_t kVerbsTrailerAt = kVerbsSlotBytes - sizeof(VerbsTrailer);
// Behind slots and pieces: a word that means nothing, and one for the count of consumed frames.
inline constexpr std::size_t kVerbsIdleWordAt =
    kVerbsSlots * kVerbsSlotBytes + kVerbsPieces * kVerbsPieceBytes;
inline constexpr std::size_t kVerbsConsumedAt = kVerbsIdleWordAt + 64;
inline constexpr std::size_t kVerbsRingBytes = kVerbsConsumedAt + 64;

// Where the frame and the long frame lie that count from 0.
inline constexpr std::size_t verbs_slot_at(std::uint64_t frame) {
  return static_cast<std::size_t>(frame % kVerbsSlots) * kVerbsSlotBytes;
}
inline constexpr std::size_t verbs_piece_at(std::uint64_t piece) {
  return kVerbsSlots * kVerbsSlotBytes +
         static_cast<std::size_t>(piece % kVerbsPieces) * kVerbsPieceBytes;
}
// Bytes that a short payload takes before the trailer.
inline constexpr std::size_t verbs_padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

// Both counts that the receiver returns, modulo 2^32.
inline constexpr std::uint64_t verbs_consumed(std::uint64_t frames, std::uint64_t pieces) {
  return (frames & 0xffff'ffff) | pieces << 32;
}

// The longest payload that stands before the trailer, for packets of 128 << `mtu` bytes.
inline constexpr std::size_t verbs_most_short(std::uint32_t mtu) {
  const std::size_t packet = std::size_t{128} << mtu;
  return (packet < kVerbsSlotBytes ? packet : kVerbsSlotBytes) - sizeof(VerbsTrailer);
}

// A device repeats an unacknowledged write so many times. To soft-RoCE, 7 means without limit.
inline constexpr std::uint8_t kVerbsRetries = 6;
// The pause before each, as an exponent of 4.096 us. Together they last as long as a peer may be
// silent, within these limits. Shorter ones repeat what was only late; longer ones delay much.
inline constexpr std::uint8_t kVerbsLeastPause = 14;
inline constexpr std::uint8_t kVerbsMostPause = 18;
inline constexpr std::uint8_t verbs_pause(std::int64_t silence_ns) {
  std::uint8_t exponent = kVerbsLeastPause;
  const auto all_ns = [](int of) { return (std::int64_t{4096} << of) * (kVerbsRetries + 1); };
  while (exponent < kVerbsMostPause && all_ns(exponent + 1) <= silence_ns) ++exponent;
  return exponent;
}

// Work requests name their connection: the peer, which side, and the frame.
inline constexpr std::uint64_t kVerbsIncomingSide = std::uint64_t{1} << 63;
inline constexpr std::uint64_t verbs_request(int rank, std::uint64_t frame) {
  return static_cast<std::uint64_t>(rank) << 32 | (frame & 0xffff'ffff);
}

}  // namespace unisono::transport
