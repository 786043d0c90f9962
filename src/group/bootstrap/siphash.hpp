// SPDX-License-Identifier: BSD-3-Clause
// SipHash-2-4: a keyed hash of 64 bits. It proves knowledge of the job key without sending it, and
// gives names to launchers' job identities. Pure functions; any thread.
// Source: Aumasson, Bernstein: "SipHash: a fast short-input PRF", INDOCRYPT 2012, sections 2 and A.
#pragma once

#include <cstdint>
#include <string_view>

namespace unisono::group {

struct HashKey {
  std::uint64_t low = 0;   // bytes 0..7, little-endian
  std::uint64_t high = 0;  // bytes 8..15
};

std::uint64_t siphash(const HashKey& key, std::string_view bytes);

// The key that a secret text stands for. The text must be hard to guess: this is not a slow hash.
HashKey hash_key_of(std::string_view secret);

}  // namespace unisono::group
