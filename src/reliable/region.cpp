// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/region.hpp"

#include <atomic>
#include <cstring>

#include "base/check.hpp"
#include "reliable/link/get_payload.hpp"

namespace unisono::reliable {

std::uint64_t Region::offset_of(const void* address, std::size_t bytes) const {
  const auto* const place = static_cast<const std::byte*>(address);
  UNISONO_CHECK(place >= begin_ && place + bytes <= begin_ + bytes_, "a put outside the region");
  return static_cast<std::uint64_t>(place - begin_);
}

std::uint64_t Region::flag_of(const transport::Put& message) const {
  return offset_of(message.flag, sizeof *message.flag) + (message.forward ? wire::kForward : 0);
}

bool Region::fits_put(const wire::Parsed& packet) const {
  const wire::Header& header = packet.header;
  const bool payload_fits = packet.payload.empty() || holds(header.place, packet.payload.size());
  const bool flag_fits = header.flag == wire::kNoPlace || (header.flag % 8 <= wire::kForward &&
                                                           holds(header.flag - header.flag % 8, 8));
  return payload_fits && flag_fits;
}

bool Region::fits_get(const wire::Parsed& packet) const {
  const wire::Header& header = packet.header;
  const auto target = decode_get(packet.payload);
  return target && target->bytes != 0 && holds(header.place, target->bytes) &&
         holds(target->place, target->bytes) && header.flag % 8 == 0 && holds(header.flag, 8);
}

void Region::write(const wire::Parsed& packet) {
  ++arrived_.packets;
  arrived_.following = packet.header.flag == wire::kNoPlace ? packet.header.value : 0;
  if (packet.payload.empty()) return;
  std::byte* const place = at(packet.header.place);
  std::uint64_t word;
  if (packet.payload.size() == sizeof word && packet.header.place % sizeof word == 0) {
    // Other threads may look at it meanwhile, as at a rank's state.
    std::memcpy(&word, packet.payload.data(), sizeof word);
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(place))
        .store(word, std::memory_order_relaxed);
    return;
  }
  std::memcpy(place, packet.payload.data(), packet.payload.size());
}

void Region::raise(std::uint64_t flag, std::uint64_t value) {
  ++arrived_.messages;
  const bool forward = (flag & wire::kForward) != 0;
  transport::raise(reinterpret_cast<std::uint64_t*>(at(flag & ~wire::kForward)), value, forward);
}

}  // namespace unisono::reliable
