// SPDX-License-Identifier: BSD-3-Clause
// How a rank waits for the NIC path's result in memory, and when it takes a packet to be lost. For
// NicGroup, NicAllgather and who waits for them beside other work.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace unisono::engine::nic_patience {

// It looks at memory so often, then yields so often, then sleeps until the program wakes it, or for
// so long, longer and longer: it has to see whether packets are lost, or the daemon.
inline constexpr int kSpins = 100;
inline constexpr int kYields = 500;
inline constexpr std::int64_t kFirstSleep = 10 * base::kMillisecond;
inline constexpr std::int64_t kLongestSleep = 50 * base::kMillisecond;
// ... and so long if nothing wakes it.
inline constexpr std::int64_t kNap = base::kMillisecond;
// After which it takes a packet to be lost, and asks; each time it is longer.
inline constexpr std::int64_t kFirstPatience = 10 * base::kMillisecond;
inline constexpr std::int64_t kLongestPatience = base::kSecond / 2;

}  // namespace unisono::engine::nic_patience
