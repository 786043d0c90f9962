// SPDX-License-Identifier: BSD-3-Clause
// How a rank waits for the NIC path's result in memory, where nothing wakes it, and when it takes a
// packet to be lost. For NicGroup and NicAllgather.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace unisono::engine::nic_patience {

// It looks at memory so often, then yields so often, then sleeps for longer and longer: a busy
// neighbour does not get it, and an idle rank does not burn a core.
inline constexpr int kSpins = 100;
inline constexpr int kYields = 500;
inline constexpr std::int64_t kFirstSleep = 20 * base::kMicrosecond;
inline constexpr std::int64_t kLongestSleep = base::kMillisecond;
// After which it takes a packet to be lost, and asks; each time it is longer.
inline constexpr std::int64_t kFirstPatience = 10 * base::kMillisecond;
inline constexpr std::int64_t kLongestPatience = base::kSecond / 2;

}  // namespace unisono::engine::nic_patience
