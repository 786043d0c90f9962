// SPDX-License-Identifier: BSD-3-Clause
// Region: the memory of a rank to which other ranks put. All ranks' regions have the same size and
// layout, so packets name a place by its offset. Offsets of packets are checked before they are
// used. Other threads may read the memory meanwhile. One thread at a time writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/transport.hpp"
#include "wire/packet_filter.hpp"

namespace unisono::reliable {

class Region {
 public:
  Region(std::byte* begin, std::size_t bytes) : begin_(begin), bytes_(bytes) {}

  // `bytes` from `address` on have to lie in it.
  std::uint64_t offset_of(const void* address, std::size_t bytes) const;
  // The flag of a put as in a packet.
  std::uint64_t flag_of(const transport::Put& message) const;
  std::byte* at(std::uint64_t offset) const { return begin_ + offset; }

  // Whether a put's payload and flag, and what a get asks for, lie in it.
  bool fits_put(const wire::Parsed& packet) const;
  bool fits_get(const wire::Parsed& packet) const;

  // Writes the payload of a put that fits.
  void write(const wire::Parsed& packet);
  // All bytes of a message are there. `flag`: as in a packet.
  void raise(std::uint64_t flag, std::uint64_t value);

  // Counts of received puts: packets, each once, and messages that became whole.
  struct Arrived {
    std::int64_t packets = 0, messages = 0;
    std::uint64_t following = 0;  // packets that the last one has announced
  };
  const Arrived& arrived() const { return arrived_; }

 private:
  bool holds(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= bytes_ && bytes <= bytes_ - offset;
  }

  std::byte* begin_;
  std::size_t bytes_;
  Arrived arrived_;
};

}  // namespace unisono::reliable
