// SPDX-License-Identifier: BSD-3-Clause
// Libcrypto: Poly1305 by OpenSSL's libcrypto.so.3, loaded when the first stream is opened, so that
// it need not be installed elsewhere (docs/decisions/0018 does the same for libfabric). libcrypto()
// may be called by any thread; a Poly1305 belongs to one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace unisono::transport {

class Poly1305 {
 public:
  virtual ~Poly1305() = default;
  // `key`: for these bytes only.
  virtual std::array<std::byte, 16> tag(std::span<const unsigned char, 32> key,
                                        std::span<const std::byte> bytes) = 0;
};

class Libcrypto {
 public:
  virtual ~Libcrypto() = default;
  // Null: it has no memory.
  virtual std::unique_ptr<Poly1305> new_poly1305() const = 0;
};

// Null if it is not installed, or this Unisono was built without its headers. The same at each
// call.
const Libcrypto* libcrypto();

}  // namespace unisono::transport
