// SPDX-License-Identifier: BSD-3-Clause
// How a thread stores long messages where other cores read them. A store to a cache line that
// another core has read waits for that core. Between cores far apart that takes most of a message's
// time. Stores past the caches (non-temporal ones) do not wait, but the reader then reads from
// memory, which takes longer if its core is near. So a thread measures both ways and keeps to the
// faster one. Nobody has to agree with it. Figures: docs/explanation/speed-on-one-host.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono::transport {

// Shorter stores take as long as it takes to measure them.
inline constexpr std::size_t kLongStoreBytes = std::size_t{32} << 10;

// Decides how the next message goes, from the times of those before. One thread at a time.
class StorePace {
 public:
  enum class Way : std::uint8_t { cached, past_caches };

  // Mostly the usual way; now and then the other one, to know its time.
  Way next();
  // How long a message of that way took.
  void note(Way way, std::size_t bytes, std::int64_t ns);
  // The usual way.
  Way usual() const { return usual_; }

 private:
  std::uint32_t count_ = 0;   // of messages so far
  std::uint32_t slow_ = 0;    // cached ones in a row that were much slower than past the caches
  double past_per_byte_ = 0;  // ns, of messages past the caches; 0: not known
  Way usual_ = Way::cached;
};

// Like memcpy; on processors without such stores it is that. A release store that follows tells
// other cores of the bytes.
void copy_past_caches(std::byte* place, const std::byte* source, std::size_t bytes);

// Copies so many bytes, which may lie anywhere but not overlap, for that rank of the job to read.
// When it returns, a release store tells other cores of them. At least kLongStoreBytes. Any thread;
// each has paces of its own.
void store_long(int target, std::byte* place, const std::byte* source, std::size_t bytes);

}  // namespace unisono::transport
