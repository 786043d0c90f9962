// SPDX-License-Identifier: BSD-3-Clause
// A descriptor that identifies a process for good, while its number may be reused. By system call:
// the header of glibc 2.36 declares its functions for C only. Any thread.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/descriptor.hpp"

namespace unisono::tools {

// Invalid, with errno, if there is no such process.
inline base::Descriptor open_process(pid_t pid) {
  return base::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

// As kill(2): 0, or -1 and errno.
inline int signal_process(const base::Descriptor& process, int number) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, process.get(), number, nullptr, 0));
}

}  // namespace unisono::tools
