// SPDX-License-Identifier: BSD-3-Clause
// NumberTable: finds the numbers of things by their content. The things lie elsewhere, so that an
// entry takes two words of 32 bits; a million ranks may have a million different programs. A
// value; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace unisono::sim {

class NumberTable {
 public:
  // The number of a thing with this hash: the known one for which is_equal(number), or else that of
  // make(), which adds the thing.
  template <class IsEqual, class Make>
  std::uint32_t find(std::uint64_t hash, const IsEqual& is_equal, const Make& make) {
    const auto bits = static_cast<std::uint32_t>(hash ^ hash >> 32);
    for (std::size_t place = bits & mask();; place = (place + 1) & mask()) {
      Entry& entry = entries_[place];
      if (entry.number == kNone) {
        entry = {bits, make()};
        const std::uint32_t number = entry.number;
        if (++count_ * 4 > entries_.size() * 3) grow();
        return number;
      }
      if (entry.bits == bits && is_equal(entry.number)) return entry.number;
    }
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  struct Entry {
    std::uint32_t bits = 0, number = kNone;
  };

  std::size_t mask() const { return entries_.size() - 1; }
  void grow() {
    const std::vector<Entry> before = std::exchange(entries_, std::vector<Entry>(2 * (mask() + 1)));
    for (const Entry& each : before) {
      if (each.number == kNone) continue;
      std::size_t place = each.bits & mask();
      while (entries_[place].number != kNone) place = (place + 1) & mask();
      entries_[place] = each;
    }
  }

  std::vector<Entry> entries_{std::size_t{16}};  // as many as a power of two
  std::size_t count_ = 0;
};

}  // namespace unisono::sim
