// SPDX-License-Identifier: BSD-3-Clause
// Aegis: the 128-bit tag of AEGIS-128L or AEGIS-128X2 (IRTF CFRG, draft-irtf-cfrg-aegis-aead) with
// an empty message, whose associated data are the bytes. The nonce is a number, little-endian, so
// each number is for one span of bytes under a key. AEGIS-128L takes one AES round of the processor
// for each four bytes, so it is several times as fast as Poly1305 without registers of 512 bits.
// AEGIS-128X2 is two of them side by side, one round of two blocks for each eight bytes.
//
// It is written here because the library that has AEGIS-128L (libsodium from 1.0.19 on) is newer
// than those of many systems. The result is the same. Values; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace unisono::transport {

class Aegis {
 public:
  enum class Width : std::uint8_t { one_block, two_blocks };  // AEGIS-128L, AEGIS-128X2

  // Whether the processor has the instructions. Only then may there be one.
  static bool is_supported(Width width);

  Aegis(Width width, std::span<const std::byte, 16> key);
  std::array<std::byte, 16> tag(std::uint64_t number, std::span<const std::byte> bytes) const;

 private:
  Width width_;
  std::array<std::byte, 16> key_;
};

}  // namespace unisono::transport
