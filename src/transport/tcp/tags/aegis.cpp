// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp/tags/aegis.hpp"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>
#endif

#include "base/check.hpp"

namespace unisono::transport {

Aegis::Aegis(Width width, std::span<const std::byte, 16> key) : width_(width) {
  std::ranges::copy(key, key_.begin());
}

#if defined(__x86_64__)
namespace {

// The numbers of Fibonacci modulo 256.
constexpr std::array<std::uint8_t, 32> kFibonacci = {
    0x00, 0x01, 0x01, 0x02, 0x03, 0x05, 0x08, 0x0d, 0x15, 0x22, 0x37, 0x59, 0x90, 0xe9, 0x79, 0x62,
    0xdb, 0x3d, 0x18, 0x55, 0x6d, 0xc2, 0x2f, 0xf1, 0x20, 0x11, 0x31, 0x42, 0x73, 0xb5, 0x28, 0xdd};

constexpr std::size_t kPageBytes = 4096;

namespace one_block {

#define UNISONO_AES_ENTRY [[gnu::target("aes,avx")]]
// In a function of this target only, into which they are inlined.
#define UNISONO_AES [[gnu::target("aes,avx"), gnu::always_inline]] inline

struct Instructions {
  using Blocks = __m128i;

  UNISONO_AES static Blocks load(const void* bytes) {
    return _mm_loadu_si128(static_cast<const __m128i*>(bytes));
  }
  UNISONO_AES static Blocks repeat(const void* bytes) { return load(bytes); }
  // The halves of its block are a number, and 0.
  UNISONO_AES static Blocks of_number(std::uint64_t number) {
    return _mm_set_epi64x(0, static_cast<long long>(number));
  }
  UNISONO_AES static Blocks combine(Blocks a, Blocks b) { return _mm_xor_si128(a, b); }
  UNISONO_AES static Blocks round(Blocks block, Blocks key) { return _mm_aesenc_si128(block, key); }
  UNISONO_AES static Blocks tell_apart(Blocks block) { return block; }
  UNISONO_AES static __m128i merge(Blocks block) { return block; }
};

#include "transport/tcp/tags/aegis_inl.hpp"

#undef UNISONO_AES
#undef UNISONO_AES_ENTRY

}  // namespace one_block

namespace two_blocks {

#define UNISONO_AES_ENTRY [[gnu::target("vaes,avx2")]]
#define UNISONO_AES [[gnu::target("vaes,avx2"), gnu::always_inline]] inline

struct Instructions {
  using Blocks = __m256i;

  UNISONO_AES static Blocks load(const void* bytes) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(bytes));
  }
  UNISONO_AES static Blocks repeat(const void* bytes) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(bytes)));
  }
  UNISONO_AES static Blocks of_number(std::uint64_t number) {
    return _mm256_broadcastsi128_si256(_mm_set_epi64x(0, static_cast<long long>(number)));
  }
  UNISONO_AES static Blocks combine(Blocks a, Blocks b) { return _mm256_xor_si256(a, b); }
  UNISONO_AES static Blocks round(Blocks block, Blocks key) {
    return _mm256_aesenc_epi128(block, key);
  }
  // Each half has its index, and that of the last one.
  UNISONO_AES static Blocks tell_apart(Blocks block) {
    return combine(block, _mm256_set_epi64x(0, 0x0101, 0, 0x0100));
  }
  UNISONO_AES static __m128i merge(Blocks block) {
    return _mm_xor_si128(_mm256_castsi256_si128(block), _mm256_extracti128_si256(block, 1));
  }
};

#include "transport/tcp/tags/aegis_inl.hpp"

#undef UNISONO_AES
#undef UNISONO_AES_ENTRY

}  // namespace two_blocks
}  // namespace

bool Aegis::is_supported(Width width) {
  const bool has_one = __builtin_cpu_supports("aes") != 0 && __builtin_cpu_supports("avx") != 0;
  if (width == Width::one_block) return has_one;
  return has_one && __builtin_cpu_supports("vaes") != 0 && __builtin_cpu_supports("avx2") != 0;
}

std::array<std::byte, 16> Aegis::tag(std::uint64_t number, std::span<const std::byte> bytes) const {
  std::array<std::byte, 16> tag;
  if (width_ == Width::two_blocks) {
    two_blocks::compute_aegis(key_.data(), number, bytes, tag.data());
  } else {
    one_block::compute_aegis(key_.data(), number, bytes, tag.data());
  }
  return tag;
}

#else

bool Aegis::is_supported(Width) { return false; }

std::array<std::byte, 16> Aegis::tag(std::uint64_t, std::span<const std::byte>) const {
  UNISONO_CHECK(false, "a tag by instructions that the processor does not have");
  return {};
}

#endif

}  // namespace unisono::transport
