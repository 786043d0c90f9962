// SPDX-License-Identifier: BSD-3-Clause
// How a thread stores messages of a page or more where other cores read them. A store to a cache
// line that another core has read waits for that core. Between cores far apart that takes most of a
// message's time. Stores past the caches (non-temporal ones) do not wait, but the reader then reads
// from memory, which takes longer if its core is near. So a thread measures both ways and keeps to
// the faster one. Nobody has to agree with it. Figures: docs/explanation/speed-on-one-host.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono::transport {

// Shorter stores are as fast either way.
inline constexpr std::size_t kPacedBytes = std::size_t{4} << 10;
inline constexpr std::size_t kLongStoreBytes = std::size_t{32} << 10;
// To measure a shorter one takes about as long as the store, so one of so many is measured.
inline constexpr std::uint32_t kMeasuredOf = 16;

// Decides how the next message goes, from the times of those before. One thread at a time.
class StorePace {
 public:
  enum class Way : std::uint8_t { cached, past_caches };

  // Cached stores between far cores take more than so many times as long as stores past the caches.
  explicit StorePace(double much_slower) : much_slower_(much_slower) {}

  // Mostly the usual way; now and then the other one, to know its time.
  Way next();
  // How long a message of that way took.
  void note(Way way, std::size_t bytes, std::int64_t ns);
  // The usual way.
  Way usual() const { return usual_; }

 private:
  double much_slower_;
  std::uint32_t count_ = 0;   // of messages so far
  std::uint32_t slow_ = 0;    // cached ones in a row that were much slower than past the caches
  double past_per_byte_ = 0;  // ns, of messages past the caches; 0: not known
  Way usual_ = Way::cached;
};

// Like memcpy; on processors without such stores it is that. A release store that follows tells
// other cores of the bytes.
void copy_past_caches(std::byte* place, const std::byte* source, std::size_t bytes);

// The reader of a message. long_round: what lay there before has left the inner caches.
struct Reader {
  int rank = -1;  // of the job
  bool long_round = false;
};
// Copies so many bytes, which may lie anywhere but not overlap, for that rank to read. When it
// returns, a release store tells other cores of them. Any thread; each has paces of its own.
void store_paced(Reader reader, std::byte* place, const std::byte* source, std::size_t bytes);

}  // namespace unisono::transport
