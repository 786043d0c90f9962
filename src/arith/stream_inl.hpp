// SPDX-License-Identifier: BSD-3-Clause
// The one loop of all SIMD kernels, included once per Highway target by the *_kernel.cpp files.
// An Operation gives
//   Element  the C++ type of an element, Lane the type of the register's lanes it consists of
//   scalar   Element x Element -> Element (needed for elements smaller than a 128-bit register)
//   vector   tag, V x V -> V, with V a register of lanes that holds whole elements
// and kernel<Operation> is a Kernel. It touches no byte outside the three ranges, reads with any
// alignment, and gives the same result whether target is left, right or neither.
#if defined(UNISONO_ARITH_STREAM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef UNISONO_ARITH_STREAM_INL
#undef UNISONO_ARITH_STREAM_INL
#else
#define UNISONO_ARITH_STREAM_INL
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/simd/target.hpp"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::arith::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

static_assert(std::endian::native == std::endian::little, "lanes are taken in memory order");

struct Streams {
  unsigned char* target;
  const unsigned char* left;
  const unsigned char* right;
};

template <class D>
HWY_INLINE hn::VFromD<D> load(D d, const unsigned char* from) {
  return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(from));
}

template <class D>
HWY_INLINE void store(hn::VFromD<D> v, D d, unsigned char* to) {
  hn::StoreU(v, d, reinterpret_cast<hn::TFromD<D>*>(to));
}

template <class Operation, class D>
HWY_INLINE hn::VFromD<D> combine(D d, const Streams& s, std::size_t at) {
  return Operation::vector(d, load(d, s.left + at), load(d, s.right + at));
}

template <class Operation>
HWY_INLINE void scalar_loop(const Streams& s, std::size_t bytes) {
  using Element = typename Operation::Element;
  for (std::size_t i = 0; i < bytes; i += sizeof(Element)) {
    Element a;
    Element b;
    std::memcpy(&a, s.left + i, sizeof a);
    std::memcpy(&b, s.right + i, sizeof b);
    const Element result = Operation::scalar(a, b);
    std::memcpy(s.target + i, &result, sizeof result);
  }
}

// For bytes >= one register. The first and the last register are computed before any store and
// stored after all others. They overlap the middle, which needs the original operands if target is
// one of them.
template <class Operation, class D>
HWY_INLINE void stream(D d, const Streams& s, std::size_t bytes) {
  constexpr std::size_t kRegister = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>);
  constexpr std::size_t kUnrolled = 4 * kRegister;
  const auto head = combine<Operation>(d, s, 0);
  const auto tail = combine<Operation>(d, s, bytes - kRegister);
  std::size_t i = kRegister;
  if (bytes >= 2 * kUnrolled) {
    // Wide stores that cross a cache line cost twice: begin the middle where target is aligned.
    const std::size_t aligned = kRegister - reinterpret_cast<std::uintptr_t>(s.target) % kRegister;
    if (aligned % sizeof(typename Operation::Element) == 0) i = aligned;
    for (; i + kUnrolled < bytes; i += kUnrolled) {
      const auto v0 = combine<Operation>(d, s, i);
      const auto v1 = combine<Operation>(d, s, i + kRegister);
      const auto v2 = combine<Operation>(d, s, i + 2 * kRegister);
      const auto v3 = combine<Operation>(d, s, i + 3 * kRegister);
      store(v0, d, s.target + i);
      store(v1, d, s.target + i + kRegister);
      store(v2, d, s.target + i + 2 * kRegister);
      store(v3, d, s.target + i + 3 * kRegister);
    }
  }
  for (; i + kRegister < bytes; i += kRegister) {
    store(combine<Operation>(d, s, i), d, s.target + i);
  }
  store(head, d, s.target);
  store(tail, d, s.target + bytes - kRegister);
}

template <class Operation>
void kernel(void* target, const void* left, const void* right, std::int64_t count, const void*) {
  using Lane = typename Operation::Lane;
  constexpr std::size_t kElement = sizeof(typename Operation::Element);
  constexpr std::size_t kNarrow = 16;
  const hn::ScalableTag<Lane> wide;
  const hn::CappedTag<Lane, kNarrow / sizeof(Lane)> narrow;
  const Streams s{static_cast<unsigned char*>(target), static_cast<const unsigned char*>(left),
                  static_cast<const unsigned char*>(right)};
  const std::size_t bytes = static_cast<std::size_t>(count) * kElement;
  if (bytes < kNarrow) {
    if constexpr (kElement < kNarrow) scalar_loop<Operation>(s, bytes);
  } else if (bytes < hn::MaxLanes(wide) * sizeof(Lane)) {
    stream<Operation>(narrow, s, bytes);
  } else {
    stream<Operation>(wide, s, bytes);
  }
}

}  // namespace unisono::arith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // UNISONO_ARITH_STREAM_INL
