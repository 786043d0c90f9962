// SPDX-License-Identifier: BSD-3-Clause
// Arrivals: when the message of each slot arrives, while it is under way. A sweep of a million
// ranks would spend most of its time on new memory for all slots. One thread.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "sim/program/program.hpp"

namespace unisono::sim {

// The memory of long arrays that are not read in order. It lies in huge pages where the kernel has
// them: in pages of 4 KiB, each access would also miss the table of pages.
template <class Value>
struct HugePages {
  using value_type = Value;

  HugePages() = default;
  template <class Other>
  HugePages(const HugePages<Other>&) {}

  Value* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(Value);
    if (bytes < kLong) return static_cast<Value*>(::operator new(bytes));
    void* const made = ::operator new (bytes, std::align_val_t{kPage});
    madvise(made, bytes, MADV_HUGEPAGE);  // advice: where it fails, pages are small
    return static_cast<Value*>(made);
  }
  void deallocate(Value* values, std::size_t count) {
    if (count * sizeof(Value) < kLong) {
      ::operator delete(values);
    } else {
      ::operator delete (values, std::align_val_t{kPage});
    }
  }

  bool operator==(const HugePages&) const = default;

 private:
  static constexpr std::size_t kPage = std::size_t{1} << 21;
  static constexpr std::size_t kLong = 2 * kPage;
};

template <class Value>
using BigVector = std::vector<Value, HugePages<Value>>;

// The time of a message for which its receiver waits.
constexpr Time kAwaited = kUnfilled - 1;

// Where ranks have about as many slots each. Slots of one number and of neighbouring ranks are a
// chunk, in which ranks at the same step share lines of the cache. A chunk becomes free when all
// its messages have been taken. So the next slots of these ranks get it while a cache holds it.
class ArrivalsBySlot {
 public:
  explicit ArrivalsBySlot(const ProgramSet& programs)
      : times_(base::index(std::min<int>(programs.ranks(), kRanks)) + kApart) {
    for (int rank = 0; rank < programs.ranks(); ++rank) {
      slots_ = std::max<std::size_t>(slots_, programs.program(rank).slots);
    }
    chunks_.resize(slots_ * (block_of(programs.ranks() - 1) + 1));
    for (int rank = 0; rank < programs.ranks(); ++rank) {
      const std::uint32_t slots = programs.program(rank).slots;
      if (slots > 0) ++chunk_of(rank, static_cast<std::int32_t>(slots) - 1).expected;
    }
    // A rank with a slot also has those before it.
    for (std::size_t i = chunks_.size(); i-- > 1;) {
      if (i % slots_ != 0) chunks_[i - 1].expected += chunks_[i].expected;
    }
  }

  // Whether the receiver waits for it.
  bool fill(int rank, std::int32_t slot, Time arrival) {
    return std::exchange(times_of(chunk_of(rank, slot))[place_of(rank)], arrival) == kAwaited;
  }
  // kUnfilled if it is not there; then its receiver waits for it.
  Time take(int rank, std::int32_t slot) {
    Chunk& chunk = chunk_of(rank, slot);
    Time& time = times_of(chunk)[place_of(rank)];
    if (time < 0) {
      time = kAwaited;
      return kUnfilled;
    }
    const Time taken = std::exchange(time, kUnfilled);
    if (--chunk.expected == 0) free_.push_back(std::exchange(chunk.times, nullptr));
    return taken;
  }

  // Chunks with messages that have not been taken.
  std::size_t in_use() const { return made_ - free_.size(); }

 private:
  struct Chunk {
    Time* times = nullptr;
    std::uint32_t expected = 0;  // messages that have not been taken
  };

  static constexpr int kRanks = 4096;  // of a chunk
  // Chunks that were a power of two apart would compete for the same lines of a cache.
  static constexpr std::size_t kApart = 64;
  static constexpr std::size_t kOfSlab = 63;  // chunks: of most ranks, a huge page

  static std::size_t block_of(int rank) { return base::index(rank / kRanks); }
  static std::size_t place_of(int rank) { return base::index(rank % kRanks); }
  Chunk& chunk_of(int rank, std::int32_t slot) {
    return chunks_[block_of(rank) * slots_ + base::index(slot)];
  }

  Time* times_of(Chunk& chunk) {
    if (chunk.times == nullptr) chunk.times = new_times();
    return chunk.times;
  }
  Time* new_times() {
    if (free_.empty()) {
      const std::size_t count = std::min(kOfSlab, chunks_.size());
      slabs_.emplace_back(count * times_, kUnfilled);
      made_ += count;
      for (std::size_t i = count; i > 0; --i) {
        free_.push_back(slabs_.back().data() + (i - 1) * times_);
      }
    }
    Time* const times = free_.back();
    free_.pop_back();
    return times;
  }

  std::size_t times_;          // of a chunk
  std::size_t slots_ = 0;      // of a rank, the most
  std::size_t made_ = 0;       // chunks with memory
  std::vector<Chunk> chunks_;  // by block of ranks and slot
  std::vector<Time*> free_;    // all of their times are kUnfilled
  std::vector<BigVector<Time>> slabs_;
};

// All slots of a rank side by side.
class ArrivalsByRank {
 public:
  explicit ArrivalsByRank(const ProgramSet& programs) {
    first_.reserve(base::index(programs.ranks()));
    std::size_t slots = 0;
    for (int rank = 0; rank < programs.ranks(); ++rank) {
      first_.push_back(slots);
      slots += programs.program(rank).slots;
    }
    times_.assign(slots, kUnfilled);
  }

  bool fill(int rank, std::int32_t slot, Time arrival) {
    return std::exchange(of(rank, slot), arrival) == kAwaited;
  }
  Time take(int rank, std::int32_t slot) {
    Time& time = of(rank, slot);
    if (time < 0) {
      time = kAwaited;
      return kUnfilled;
    }
    return time;
  }

 private:
  Time& of(int rank, std::int32_t slot) {
    return times_[first_[base::index(rank)] + base::index(slot)];
  }

  std::vector<std::size_t> first_;
  BigVector<Time> times_;
};

// Whether most places of slots by number would be used.
inline bool have_like_slots(const ProgramSet& programs) {
  std::size_t slots = 0, most = 0;
  for (int rank = 0; rank < programs.ranks(); ++rank) {
    const std::size_t own = programs.program(rank).slots;
    slots += own;
    most = std::max(most, own);
  }
  return most * base::index(programs.ranks()) <= slots + slots / 4;
}

}  // namespace unisono::sim
