// SPDX-License-Identifier: BSD-3-Clause
// LibipsecMb: AES-128-GMAC by libipsec-mb, loaded when the first stream is opened, as libcrypto is
// (libcrypto.hpp). It is used where the processor computes it with its widest registers, which is
// twice as fast as Poly1305. libipsec_mb() may be called by any thread; a Gmac belongs to one
// thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace unisono::transport {

class Gmac {
 public:
  virtual ~Gmac() = default;
  // Each number for one sequence of bytes: it is the nonce (8 bytes little-endian, then 4 zeros).
  virtual std::array<std::byte, 16> tag(std::uint64_t number, std::span<const std::byte> bytes) = 0;
};

class LibipsecMb {
 public:
  virtual ~LibipsecMb() = default;
  // Null: no memory.
  virtual std::unique_ptr<Gmac> new_gmac(std::span<const std::byte, 16> key) const = 0;
};

// Null if it is not installed, or this Unisono was built without its headers. Also if it computes
// a wrong tag, or the processor has no AVX-512 and VAES. The same at each call.
const LibipsecMb* libipsec_mb();

}  // namespace unisono::transport
