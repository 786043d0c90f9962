// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp/frame.hpp"

#include <algorithm>
#include <string_view>

#include "transport/tcp/little_endian.hpp"

namespace unisono::transport {
namespace {

constexpr std::size_t kPlace = 0;
constexpr std::size_t kBytes = 8;
constexpr std::size_t kForward = 12;
constexpr std::size_t kFlag = 16;
constexpr std::size_t kValue = 24;
constexpr std::size_t kPayload = 32;
constexpr std::size_t kTag = 48;

std::uint64_t tag_of(std::span<const std::byte, kFrameHeaderBytes> header, const wire::Key& key,
                     std::uint64_t number) {
  FrameHeader tagged;
  std::ranges::copy(header, tagged.begin());
  store_little_endian(tagged.data() + kTag, number);
  return wire::hash(key, {reinterpret_cast<const char*>(tagged.data()), tagged.size()});
}

bool fits(const StreamFrame& frame, std::uint64_t region_bytes) {
  const auto holds = [region_bytes](std::uint64_t place, std::uint64_t bytes) {
    return place <= region_bytes && bytes <= region_bytes - place;
  };
  const bool flag_fits =
      frame.flag == kNoFlag ? !frame.forward : frame.flag % 8 == 0 && holds(frame.flag, 8);
  return frame.bytes <= kMostFrameBytes && holds(frame.place, frame.bytes) && flag_fits;
}

}  // namespace

FrameHeader encode_frame(const StreamFrame& frame, const wire::Key& key, std::uint64_t number) {
  FrameHeader header{};
  store_little_endian(header.data() + kPlace, frame.place);
  store_little_endian(header.data() + kBytes, frame.bytes);
  store_little_endian(header.data() + kForward, std::uint32_t{frame.forward ? 1U : 0U});
  store_little_endian(header.data() + kFlag, frame.flag);
  store_little_endian(header.data() + kValue, frame.value);
  std::ranges::copy(frame.payload, header.begin() + kPayload);
  store_little_endian(header.data() + kTag, tag_of(header, key, number));
  return header;
}

std::optional<StreamFrame> decode_frame(std::span<const std::byte, kFrameHeaderBytes> header,
                                        const wire::Key& key, std::uint64_t number,
                                        std::uint64_t region_bytes) {
  if (load_little_endian<std::uint64_t>(header.data() + kTag) != tag_of(header, key, number)) {
    return std::nullopt;
  }
  const auto forward = load_little_endian<std::uint32_t>(header.data() + kForward);
  if (forward > 1) return std::nullopt;
  StreamFrame frame;
  frame.place = load_little_endian<std::uint64_t>(header.data() + kPlace);
  frame.bytes = load_little_endian<std::uint32_t>(header.data() + kBytes);
  frame.forward = forward == 1;
  frame.flag = load_little_endian<std::uint64_t>(header.data() + kFlag);
  frame.value = load_little_endian<std::uint64_t>(header.data() + kValue);
  std::ranges::copy(header.subspan<kPayload, 16>(), frame.payload.begin());
  if (!fits(frame, region_bytes)) return std::nullopt;
  return frame;
}

}  // namespace unisono::transport
