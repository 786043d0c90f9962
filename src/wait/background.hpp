// SPDX-License-Identifier: BSD-3-Clause
// Background threads: threads that only communicate, while other threads of the process compute on
// the same cores. Each thread says it of itself. Such a thread never yields: a yield lets a
// computing thread run until the kernel's next tick, up to 4 ms, and a wake-up costs microseconds.
#pragma once

namespace unisono::wait {

void set_background_thread(bool is_background);
bool is_background_thread();

}  // namespace unisono::wait
