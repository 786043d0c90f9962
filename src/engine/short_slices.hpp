// SPDX-License-Identifier: BSD-3-Clause
// Short time slices: where other programs compute on the cores, a thread that wakes up waits until
// the slice of whoever runs there has ended, up to some milliseconds, unless its own slices are the
// shorter ones. The length of a slice says nothing about a thread's share of the core, so the
// kernel lets every thread choose (Linux 6.12, EEVDF with PREEMPT_SHORT).
#pragma once

#include <cstdint>

namespace unisono::engine {

// The shortest that the kernel grants.
inline constexpr std::int64_t kShortSliceNs = 100'000;

// From now on the calling thread, and threads that it starts, have slices of kShortSliceNs. False,
// and nothing changes, where the kernel knows no such thing, or the thread has another policy than
// the ordinary ones. Calls after the thread's first cost nothing.
bool ask_for_short_slices();

}  // namespace unisono::engine
