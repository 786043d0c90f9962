// SPDX-License-Identifier: BSD-3-Clause
// When a rank that sleeps in a wait looks thoroughly for reasons why its operations do not end.
// With many ranks such a look takes long, in which its core does nothing else. After a short delay
// of one rank, the looks of others would delay all for longer, and so more of them would sleep. So
// the wait must have lasted, however long ago the last look was. And the looks of all ranks of a
// core together take a small part of its time: their cost grows with the square of the number of
// ranks. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"

namespace unisono::comm {

// The time before the first thorough look of a wait, and at least between two.
inline constexpr std::int64_t kThoroughlyEveryNs = 10 * base::kMillisecond;

// The time until the next look, after one that took `look_ns` of a core. It is at most `most_ns`,
// since only looks that follow each other soon find a stopped process. If it is less, the looks of
// the `ranks` that share the core take a 20th of its time.
constexpr std::int64_t pause_between_looks_ns(std::int64_t look_ns, int ranks,
                                              std::int64_t most_ns) {
  constexpr std::int64_t kPart = 20;
  const std::int64_t times = kPart * std::max(ranks, 1);
  return std::max(kThoroughlyEveryNs, std::min(look_ns, most_ns / times) * times);
}

// Whether a look is due in a wait that began at `waits_from_ns`.
constexpr bool is_thorough_look_due(std::int64_t now_ns, std::int64_t looked_ns,
                                    std::int64_t waits_from_ns, std::int64_t pause_ns) {
  return now_ns - std::max(looked_ns, waits_from_ns) > pause_ns;
}

// Whether to look at the processes of other ranks too, each of which costs system calls. A rank
// counts as lost only after it has been stopped for `limit_ns`.
constexpr bool may_look_at_processes(std::int64_t now_ns, std::int64_t limit_ns,
                                     std::int64_t waits_from_ns) {
  constexpr std::int64_t kPartOfLimit = 10;
  return now_ns - waits_from_ns >= limit_ns / kPartOfLimit;
}

}  // namespace unisono::comm
