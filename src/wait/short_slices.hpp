// SPDX-License-Identifier: BSD-3-Clause
// Short time slices: where other programs compute on the cores, a thread that wakes up waits until
// the slice of whoever runs there has ended, up to some milliseconds, unless its own slices are the
// shorter ones. The length of a slice says nothing about a thread's share of the core, so the
// kernel lets every thread choose (Linux 6.12, EEVDF with PREEMPT_SHORT).
#pragma once

#include <cstdint>

namespace unisono::wait {

// The shortest that the kernel grants.
inline constexpr std::int64_t kShortSliceNs = 100'000;

// From now on the calling thread has slices of kShortSliceNs, but not the threads and processes
// that it starts, unless its nice value is negative. False, and nothing changes, where the kernel
// knows no such thing, or the thread has another policy than the ordinary ones. Calls after the
// thread's first cost nothing.
bool ask_for_short_slices();

}  // namespace unisono::wait
