// SPDX-License-Identifier: BSD-3-Clause
// StreamFrame: what precedes each payload on a stream between two ranks: where in the receiver's
// region it belongs, and which flag is raised behind it. The header has a tag of its own, so a
// receiver writes nowhere before it knows that the place is genuine. Pure functions; any thread.
//
//     0  place   8   offset of the payload in the receiver's region
//     8  bytes   4   of the payload, which follows; at most kMostFrameBytes
//    12  forward 4   1: the flag's word keeps its value if that is larger; otherwise 0
//    16  flag    8   offset of the word to raise; all ones: none
//    24  value   8   that it gets
//    32  payload 16  tag of the payload (PayloadTagger)
//    48  tag     8   SipHash-2-4 of bytes 0 to 47 and the frame's number in its connection
//
// Numbers are little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "transport/remote_memory.hpp"
#include "transport/tcp/tags/payload_tag.hpp"
#include "wire/key.hpp"

namespace unisono::transport {

inline constexpr std::size_t kFrameHeaderBytes = 56;
using FrameHeader = std::array<std::byte, kFrameHeaderBytes>;

// Longer transfers go in several frames. A frame is tagged while it lies in the processor's cache.
inline constexpr std::size_t kMostFrameBytes = std::size_t{128} << 10;

// Frames that one system call sends. The kernel needs less time for each byte of a longer call.
inline constexpr std::size_t kFramesInBatch = 8;
inline constexpr std::size_t kMostBatchBytes = kFramesInBatch * kMostFrameBytes;

struct StreamFrame {
  std::uint64_t place = 0;
  std::uint32_t bytes = 0;
  bool forward = false;
  std::uint64_t flag = kNoFlag;
  std::uint64_t value = 0;
  PayloadTag payload{};
  bool operator==(const StreamFrame&) const = default;
};

FrameHeader encode_frame(const StreamFrame& frame, const wire::Key& key, std::uint64_t number);

// nullopt: the tag is wrong, or the frame does not fit into a region of so many bytes.
std::optional<StreamFrame> decode_frame(std::span<const std::byte, kFrameHeaderBytes> header,
                                        const wire::Key& key, std::uint64_t number,
                                        std::uint64_t region_bytes);

}  // namespace unisono::transport
