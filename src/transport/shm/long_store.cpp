// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/long_store.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/clock.hpp"

namespace unisono::transport {
namespace {

// Between near cores a cached store takes up to five times as long as one past the caches. There
// both cores together are faster with it. Between far ones it takes seven times as long and more.
constexpr double kMuchSlower = 6;
// After a long round, one of kLongStoreBytes takes about as long, and three times between far ones.
constexpr double kMuchSlowerAfterRound = 2.5;
// A thread that loses its core in a message makes that one look slow, and hardly several in a row.
constexpr std::uint32_t kSlowInRow = 4;
// The first messages also pay for memory that they are the first to touch. Later samples cost more
// than they tell, so that they become rare.
constexpr std::uint32_t kFirstSample = 8, kSampleEvery = 1024;
// So the way is not changed before a round of the buffers is over.
constexpr std::uint32_t kFirstChange = 96;
// While messages go past the caches, a cached one shows that the cores are near again.
constexpr std::uint32_t kReturnEvery = 64;
// By so much a slower sample past the caches counts, as it may have lost its core.
constexpr double kMostRise = 1.25;

#if defined(__x86_64__)
constexpr bool kGoesPastCaches = true;
constexpr std::size_t kCacheLine = 64;
#else
constexpr bool kGoesPastCaches = false;
#endif

// Ranks whose numbers differ by a multiple of this share a pace, which costs speed only.
constexpr std::size_t kPaces = 64;

struct Paces {
  // brief: of less than kLongStoreBytes
  StorePace brief{kMuchSlower}, whole{kMuchSlower}, after_round{kMuchSlowerAfterRound};
  std::uint32_t briefs = 0;

  StorePace& pace(bool is_brief, bool long_round) {
    if (is_brief) return brief;
    return long_round ? after_round : whole;
  }
};
thread_local std::array<Paces, kPaces> paces;

void store(StorePace::Way way, std::byte* place, const std::byte* source, std::size_t bytes) {
  if (way == StorePace::Way::cached) {
    std::memcpy(place, source, bytes);
  } else {
    copy_past_caches(place, source, bytes);
  }
}

}  // namespace

#if defined(__x86_64__)
void copy_past_caches(std::byte* place, const std::byte* source, std::size_t bytes) {
  const std::size_t to_line =
      (kCacheLine - reinterpret_cast<std::uintptr_t>(place) % kCacheLine) % kCacheLine;
  const std::size_t head = std::min(to_line, bytes);
  std::memcpy(place, source, head);
  std::size_t at = head;
  for (; at + kCacheLine <= bytes; at += kCacheLine) {
    const auto* from = reinterpret_cast<const __m128i*>(source + at);
    auto* to = reinterpret_cast<__m128i*>(place + at);
    const __m128i first = _mm_loadu_si128(from), second = _mm_loadu_si128(from + 1),
                  third = _mm_loadu_si128(from + 2), fourth = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, first);
    _mm_stream_si128(to + 1, second);
    _mm_stream_si128(to + 2, third);
    _mm_stream_si128(to + 3, fourth);
  }
  std::memcpy(place + at, source + at, bytes - at);
  _mm_sfence();  // a release store does not order such stores
}
#else
void copy_past_caches(std::byte* place, const std::byte* source, std::size_t bytes) {
  std::memcpy(place, source, bytes);
}
#endif

StorePace::Way StorePace::next() {
  ++count_;
  if (usual_ == Way::past_caches) return count_ % kReturnEvery == 0 ? Way::cached : usual_;
  const bool is_early = count_ >= kFirstSample && std::has_single_bit(count_);
  return is_early || count_ % kSampleEvery == 0 ? Way::past_caches : usual_;
}

void StorePace::note(Way way, std::size_t bytes, std::int64_t ns) {
  const double per_byte = static_cast<double>(ns) / static_cast<double>(bytes);
  if (way == Way::past_caches) {
    past_per_byte_ =
        past_per_byte_ == 0 ? per_byte : std::min(per_byte, kMostRise * past_per_byte_);
    return;
  }
  if (past_per_byte_ == 0 || count_ < kFirstChange) return;
  slow_ = per_byte > much_slower_ * past_per_byte_ ? std::min(slow_ + 1, kSlowInRow) : 0;
  usual_ = slow_ == kSlowInRow ? Way::past_caches : Way::cached;
}

void store_paced(Reader reader, std::byte* place, const std::byte* source, std::size_t bytes) {
  if (!kGoesPastCaches) {
    std::memcpy(place, source, bytes);
    return;
  }
  Paces& all = paces[static_cast<std::size_t>(reader.rank) % kPaces];
  const bool is_brief = bytes < kLongStoreBytes;
  StorePace& pace = all.pace(is_brief, reader.long_round);
  if (is_brief && ++all.briefs % kMeasuredOf != 0) {
    store(pace.usual(), place, source, bytes);
    return;
  }
  const StorePace::Way way = pace.next();
  const std::int64_t begin_ns = base::now_ns();
  store(way, place, source, bytes);
  pace.note(way, bytes, base::now_ns() - begin_ns);
}

}  // namespace unisono::transport
