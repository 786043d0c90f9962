// SPDX-License-Identifier: BSD-3-Clause
// Short time slices. Where other programs compute on the cores, a woken thread waits until the
// running program's slice ends, up to some milliseconds. It need not wait if its own slice is the
// shorter one. The length of a slice does not change a thread's share of the core. So the kernel
// lets every thread choose (Linux 6.12, EEVDF with PREEMPT_SHORT).
#pragma once

#include <cstdint>

namespace unisono::wait {

// The shortest slice that the kernel grants.
inline constexpr std::int64_t kShortSliceNs = 100'000;

// Gives the calling thread slices of kShortSliceNs from now on. Threads and processes that it
// starts do not inherit them, unless its nice value is negative. Returns false, and changes
// nothing, if the kernel has no such setting, or the thread has a special scheduling policy.
// Further calls of a thread cost nothing.
bool ask_for_short_slices();

}  // namespace unisono::wait
