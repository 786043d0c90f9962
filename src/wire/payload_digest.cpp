// SPDX-License-Identifier: BSD-3-Clause
// The lanes in vector registers, compiled once per instruction set. Data path.
#include "wire/payload_digest.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/simd/instruction_set.hpp"
#include "base/simd/target.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "wire/payload_digest.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::wire::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<std::uint64_t, kLanes>;
using Vector = hn::Vec<Tag>;

// A block has a word for each lane.
constexpr std::size_t kBlockBytes = kLanes * sizeof(std::uint64_t);

template <int kBits>
HWY_INLINE Vector rotated(Vector v) {
  return hn::RotateRight<64 - kBits>(v);
}

struct Lanes {
  Vector v0, v1, v2, v3;

  HWY_INLINE void round() {
    v0 = hn::Add(v0, v1);
    v2 = hn::Add(v2, v3);
    v1 = hn::Xor(rotated<13>(v1), v0);
    v3 = hn::Xor(rotated<16>(v3), v2);
    v0 = rotated<32>(v0);
    v2 = hn::Add(v2, v1);
    v0 = hn::Add(v0, v3);
    v1 = hn::Xor(rotated<17>(v1), v2);
    v3 = hn::Xor(rotated<21>(v3), v0);
    v2 = rotated<32>(v2);
  }
  HWY_INLINE void word(Vector words) {
    v3 = hn::Xor(v3, words);
    round();
    round();
    v0 = hn::Xor(v0, words);
  }
  HWY_INLINE void finish(std::uint64_t* digest) {
    const Tag d;
    v2 = hn::Xor(v2, hn::Set(d, 0xff));
    for (int i = 0; i < 4; ++i) round();
    hn::StoreU(hn::Xor(hn::Xor(v0, v1), hn::Xor(v2, v3)), d, digest);
  }
};

// The lanes from `first` on, in so many registers: while one waits, another is computed.
template <std::size_t kRegisters>
HWY_INLINE void hash_lanes(const Key& key, std::span<const std::byte> payload, std::size_t first,
                           std::uint64_t* digest) {
  const Tag d;
  const std::size_t n = hn::Lanes(d);
  const unisono_siphash_state start = unisono_siphash_start(&key);
  std::array<Lanes, kRegisters> lanes;
  for (std::size_t i = 0; i < kRegisters; ++i) {
    lanes[i] = {hn::Set(d, start.v0), hn::Set(d, start.v1), hn::Set(d, start.v2),
                hn::Set(d, start.v3)};
    lanes[i].word(hn::Iota(d, kLaneMark + first + i * n));
  }
  const auto take = [&](const std::byte* block) HWY_ATTR {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(block) + first;
    for (std::size_t i = 0; i < kRegisters; ++i) lanes[i].word(hn::LoadU(d, words + i * n));
  };
  const std::size_t whole = payload.size() / kBlockBytes * kBlockBytes;
  for (std::size_t at = 0; at < whole; at += kBlockBytes) take(payload.data() + at);
  if (whole < payload.size()) {
    std::array<std::byte, kBlockBytes> last{};
    std::memcpy(last.data(), payload.data() + whole, payload.size() - whole);
    take(last.data());
  }
  for (std::size_t i = 0; i < kRegisters; ++i) lanes[i].finish(digest + first + i * n);
}

void digest_of(const Key& key, std::span<const std::byte> payload, std::uint64_t* digest) {
  const std::size_t n = hn::Lanes(Tag());
  if (n == kLanes) return hash_lanes<1>(key, payload, 0, digest);
  for (std::size_t first = 0; first < kLanes; first += 2 * n) {
    hash_lanes<2>(key, payload, first, digest);
  }
}

}  // namespace
}  // namespace unisono::wire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::wire {

PayloadDigest payload_digest(const Key& key, std::span<const std::byte> payload) {
  if constexpr (std::endian::native != std::endian::little) {
    return payload_digest_by_words(key, payload);
  }
  PayloadDigest digest;
  UNISONO_BEST_VERSION(digest_of)(key, payload, digest.data());
  return digest;
}

PayloadDigest payload_digest_by_words(const Key& key, std::span<const std::byte> payload) {
  std::array<unisono_siphash_state, kLanes> lanes;
  lanes.fill(unisono_siphash_start(&key));
  for (std::size_t i = 0; i < kLanes; ++i) unisono_siphash_word(&lanes[i], kLaneMark + i);
  for (std::size_t at = 0; at < payload.size(); at += kLanes * sizeof(std::uint64_t)) {
    std::array<unsigned char, kLanes * sizeof(std::uint64_t)> block{};
    std::memcpy(block.data(), payload.data() + at, std::min(block.size(), payload.size() - at));
    for (std::size_t i = 0; i < kLanes; ++i) {
      unisono_siphash_word(&lanes[i], unisono_load_word(block.data() + i * sizeof(std::uint64_t)));
    }
  }
  PayloadDigest digest;
  std::ranges::transform(lanes, digest.begin(),
                         [](unisono_siphash_state& lane) { return unisono_siphash_result(&lane); });
  return digest;
}

}  // namespace unisono::wire
#endif
