// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp/tags/aegis.hpp"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>
#endif

#include "base/check.hpp"

namespace unisono::transport {

Aegis::Aegis(std::span<const std::byte, 16> key) { std::ranges::copy(key, key_.begin()); }

#if defined(__x86_64__)
namespace {

// In a function of this target only, into which they are inlined.
#define UNISONO_AES [[gnu::target("aes,avx"), gnu::always_inline]] inline

struct AegisState {
  static constexpr std::size_t kBlockBytes = 32;  // that an update absorbs
  static constexpr int kFirstUpdates = 10;
  static constexpr int kLastUpdates = 7;
  // The numbers of Fibonacci modulo 256.
  static constexpr std::array<std::uint8_t, 32> kFibonacci = {
      0x00, 0x01, 0x01, 0x02, 0x03, 0x05, 0x08, 0x0d, 0x15, 0x22, 0x37,
      0x59, 0x90, 0xe9, 0x79, 0x62, 0xdb, 0x3d, 0x18, 0x55, 0x6d, 0xc2,
      0x2f, 0xf1, 0x20, 0x11, 0x31, 0x42, 0x73, 0xb5, 0x28, 0xdd};

  UNISONO_AES static __m128i load(const void* bytes) {
    return _mm_loadu_si128(static_cast<const __m128i*>(bytes));
  }
  // The halves of its block are a number, and 0.
  UNISONO_AES static __m128i of_number(std::uint64_t number) {
    return _mm_set_epi64x(0, static_cast<long long>(number));
  }

  UNISONO_AES static AegisState begin(__m128i key, __m128i nonce) {
    const __m128i c0 = load(kFibonacci.data());
    const __m128i c1 = load(kFibonacci.data() + kFibonacci.size() / 2);
    const __m128i both = _mm_xor_si128(key, nonce);
    AegisState state{both,
                     c1,
                     c0,
                     c1,
                     both,
                     _mm_xor_si128(key, c0),
                     _mm_xor_si128(key, c1),
                     _mm_xor_si128(key, c0)};
    for (int i = 0; i < kFirstUpdates; ++i) state.update(nonce, key);
    return state;
  }

  UNISONO_AES void update(__m128i left, __m128i right) {
    const __m128i last = s7;
    s7 = _mm_aesenc_si128(s6, s7);
    s6 = _mm_aesenc_si128(s5, s6);
    s5 = _mm_aesenc_si128(s4, s5);
    s4 = _mm_aesenc_si128(s3, _mm_xor_si128(s4, right));
    s3 = _mm_aesenc_si128(s2, s3);
    s2 = _mm_aesenc_si128(s1, s2);
    s1 = _mm_aesenc_si128(s0, s1);
    s0 = _mm_aesenc_si128(last, _mm_xor_si128(s0, left));
  }

  UNISONO_AES void absorb(const std::byte* block) {
    update(load(block), load(block + kBlockBytes / 2));
  }

  // `bytes`: absorbed.
  UNISONO_AES __m128i end(std::size_t bytes) {
    const __m128i last = _mm_xor_si128(s2, of_number(8 * bytes));
    for (int i = 0; i < kLastUpdates; ++i) update(last, last);
    const __m128i low = _mm_xor_si128(_mm_xor_si128(s0, s1), _mm_xor_si128(s2, s3));
    return _mm_xor_si128(low, _mm_xor_si128(_mm_xor_si128(s4, s5), s6));
  }

  __m128i s0, s1, s2, s3, s4, s5, s6, s7;
};

#undef UNISONO_AES

[[gnu::target("aes,avx")]] void compute_aegis(const std::byte* key, std::uint64_t number,
                                              std::span<const std::byte> bytes, std::byte* tag) {
  constexpr std::size_t kBlock = AegisState::kBlockBytes;
  AegisState state = AegisState::begin(AegisState::load(key), AegisState::of_number(number));
  std::size_t done = 0;
  for (; bytes.size() - done >= kBlock; done += kBlock) state.absorb(bytes.data() + done);
  if (done < bytes.size()) {
    std::array<std::byte, kBlock> rest{};
    std::memcpy(rest.data(), bytes.data() + done, bytes.size() - done);
    state.absorb(rest.data());
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(tag), state.end(bytes.size()));
}

}  // namespace

bool Aegis::is_supported() {
  return __builtin_cpu_supports("aes") != 0 && __builtin_cpu_supports("avx") != 0;
}

std::array<std::byte, 16> Aegis::tag(std::uint64_t number, std::span<const std::byte> bytes) const {
  std::array<std::byte, 16> tag;
  compute_aegis(key_.data(), number, bytes, tag.data());
  return tag;
}

#else

bool Aegis::is_supported() { return false; }

std::array<std::byte, 16> Aegis::tag(std::uint64_t, std::span<const std::byte>) const {
  UNISONO_CHECK(false, "a tag by instructions that the processor does not have");
  return {};
}

#endif

}  // namespace unisono::transport
