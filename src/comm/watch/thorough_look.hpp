// SPDX-License-Identifier: BSD-3-Clause
// When a rank that sleeps in a wait looks thoroughly for reasons why its operations do not end.
// With many ranks such a look takes milliseconds, in which its core does nothing else. After a
// short delay of one rank, the looks of others would delay all for longer, and so more of them
// would sleep. So the wait must have lasted, however long ago the last look was. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"

namespace unisono::comm {

// The time between two thorough looks, and before the first.
inline constexpr std::int64_t kThoroughlyEveryNs = 10 * base::kMillisecond;

// Whether a look is due in a wait that began at `waits_from_ns`.
constexpr bool is_thorough_look_due(std::int64_t now_ns, std::int64_t looked_ns,
                                    std::int64_t waits_from_ns) {
  return now_ns - std::max(looked_ns, waits_from_ns) > kThoroughlyEveryNs;
}

// Whether to look at the processes of other ranks too, each of which costs system calls. A rank
// counts as lost only after it has been stopped for `limit_ns`.
constexpr bool may_look_at_processes(std::int64_t now_ns, std::int64_t limit_ns,
                                     std::int64_t waits_from_ns) {
  constexpr std::int64_t kPartOfLimit = 10;
  return now_ns - waits_from_ns >= limit_ns / kPartOfLimit;
}

}  // namespace unisono::comm
