// SPDX-License-Identifier: BSD-3-Clause
// Process memory: reading another process of the same user (process_vm_readv). Whether the system
// allows it depends on kernel settings and containers, so callers try before they rely on it. Any
// thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace unisono::transport {

// 0, or an errno: EPERM if it is not allowed, ESRCH if the process has ended, EFAULT if some of the
// bytes are not there.
int read_process(pid_t process, std::uint64_t address, std::byte* target, std::size_t bytes);

}  // namespace unisono::transport
