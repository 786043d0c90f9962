// SPDX-License-Identifier: BSD-3-Clause
// Libcrypto: AES-256-GMAC by OpenSSL's libcrypto.so.3, loaded when the first stream is opened, so
// that it need not be installed elsewhere (docs/decisions/0018 does the same for libfabric).
// libcrypto() may be called by any thread; a Gmac belongs to one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace unisono::transport {

class Gmac {
 public:
  virtual ~Gmac() = default;
  virtual std::array<std::byte, 16> tag(std::span<const unsigned char, 12> nonce,
                                        std::span<const std::byte> bytes) = 0;
};

class Libcrypto {
 public:
  virtual ~Libcrypto() = default;
  // Null: it has no memory.
  virtual std::unique_ptr<Gmac> new_gmac(const std::array<std::byte, 32>& key) const = 0;
};

// Null if it is not installed, or this Unisono was built without its headers. The same at each
// call.
const Libcrypto* libcrypto();

}  // namespace unisono::transport
