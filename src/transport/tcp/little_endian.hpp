// SPDX-License-Identifier: BSD-3-Clause
// Little-endian numbers in the bytes of a stream. Pure functions; any thread.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace unisono::transport {

template <std::unsigned_integral Number>
void store_little_endian(std::byte* to, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) {
    to[i] = static_cast<std::byte>((number >> (8 * i)) & 0xff);
  }
}

template <std::unsigned_integral Number>
Number load_little_endian(const std::byte* from) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    number |= static_cast<Number>(static_cast<Number>(from[i]) << (8 * i));
  }
  return number;
}

}  // namespace unisono::transport
