// SPDX-License-Identifier: BSD-3-Clause
// AegisState: the state of AEGIS-128L and AEGIS-128X2 of one or two blocks side by side, and the
// tag of a span of bytes. aegis.cpp includes it once for each, in a namespace that defines
// Instructions. UNISONO_AES there is the target of Instructions, so that all functions become part
// of compute_aegis().
#ifndef UNISONO_AES
#error "aegis.cpp includes this file, once for each width"
#endif

struct AegisState {
  using Blocks = Instructions::Blocks;
  static constexpr std::size_t kBlockBytes = 2 * sizeof(Blocks);  // that an update absorbs
  static constexpr int kFirstUpdates = 10;
  static constexpr int kLastUpdates = 7;

  UNISONO_AES static AegisState begin(Blocks key, Blocks nonce) {
    const Blocks c0 = Instructions::repeat(kFibonacci.data());
    const Blocks c1 = Instructions::repeat(kFibonacci.data() + kFibonacci.size() / 2);
    const Blocks both = Instructions::combine(key, nonce);
    AegisState state{both,
                     c1,
                     c0,
                     c1,
                     both,
                     Instructions::combine(key, c0),
                     Instructions::combine(key, c1),
                     Instructions::combine(key, c0)};
    for (int i = 0; i < kFirstUpdates; ++i) {
      state.s3 = Instructions::tell_apart(state.s3);
      state.s7 = Instructions::tell_apart(state.s7);
      state.update(nonce, key);
    }
    return state;
  }

  UNISONO_AES void update(Blocks left, Blocks right) {
    const Blocks last = s7;
    s7 = Instructions::round(s6, s7);
    s6 = Instructions::round(s5, s6);
    s5 = Instructions::round(s4, s5);
    s4 = Instructions::round(s3, Instructions::combine(s4, right));
    s3 = Instructions::round(s2, s3);
    s2 = Instructions::round(s1, s2);
    s1 = Instructions::round(s0, s1);
    s0 = Instructions::round(last, Instructions::combine(s0, left));
  }

  UNISONO_AES void absorb(const std::byte* block) {
    update(Instructions::load(block), Instructions::load(block + kBlockBytes / 2));
  }

  // `bytes`: absorbed.
  UNISONO_AES __m128i end(std::size_t bytes) {
    const Blocks last = Instructions::combine(s2, Instructions::of_number(8 * bytes));
    for (int i = 0; i < kLastUpdates; ++i) update(last, last);
    const Blocks low =
        Instructions::combine(Instructions::combine(s0, s1), Instructions::combine(s2, s3));
    return Instructions::merge(
        Instructions::combine(low, Instructions::combine(Instructions::combine(s4, s5), s6)));
  }

  Blocks s0, s1, s2, s3, s4, s5, s6, s7;
};

UNISONO_AES_ENTRY void compute_aegis(const std::byte* key, std::uint64_t number,
                                     std::span<const std::byte> bytes, std::byte* tag) {
  constexpr std::size_t kBlock = AegisState::kBlockBytes;
  AegisState state = AegisState::begin(Instructions::repeat(key), Instructions::of_number(number));
  std::size_t done = 0;
  for (; bytes.size() - done >= kBlock; done += kBlock) {
    // The processor itself prefetches up to the end of a page only.
    _mm_prefetch(bytes.data() + done + kPageBytes, _MM_HINT_T0);
    state.absorb(bytes.data() + done);
  }
  if (done < bytes.size()) {
    std::array<std::byte, kBlock> rest{};
    std::memcpy(rest.data(), bytes.data() + done, bytes.size() - done);
    state.absorb(rest.data());
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(tag), state.end(bytes.size()));
}
