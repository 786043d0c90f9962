// SPDX-License-Identifier: BSD-3-Clause
// The combined acknowledgement of a multicast: one result for its sender, the worst of all members'
// answers. A member that is lost before it is known to have the multicast makes that *failed*, for
// ever; one that has left after its last operation lacks nothing. Values; one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace unisono::reliable {

// How a rank has ceased to take part.
enum class Departure {
  left,  // by itself: it needs nothing more
  lost,  // dead, or silent for too long: nobody knows what it has
};

enum class Acknowledgement { not_yet, all_have_all, failed };

// Numbers of multicasts that failed: disjoint ranges in ascending order. There is one for each
// loss at most, and neighbours become one.
class FailedNumbers {
 public:
  // Those from `from` to before `until`; none of them is below the last range's beginning.
  void add(std::uint64_t from, std::uint64_t until) {
    if (from >= until) return;
    if (!ranges_.empty() && from <= ranges_.back().second) {
      ranges_.back().second = std::max(ranges_.back().second, until);
    } else {
      ranges_.emplace_back(from, until);
    }
  }
  // Whether one of [first, last] failed.
  bool has_any(std::uint64_t first, std::uint64_t last) const {
    const auto after = std::ranges::upper_bound(ranges_, first, {},
                                                [](const auto& range) { return range.second; });
    return after != ranges_.end() && after->first <= last;
  }
  bool has(std::uint64_t number) const { return has_any(number, number); }
  std::uint64_t count() const {
    std::uint64_t sum = 0;
    for (const auto& [from, until] : ranges_) sum += until - from;
    return sum;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
};

}  // namespace unisono::reliable
