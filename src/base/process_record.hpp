// SPDX-License-Identifier: BSD-3-Clause
// ProcessRecord: the fields of /proc/<pid>/stat. Any thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace unisono::base {

struct ProcessRecord {
  std::string command;  // at most 15 characters, as the kernel keeps it
  char state = '?';     // 'Z' and 'X': the process has ended
  pid_t parent = 0;
  std::string start_time;  // clock ticks since boot; with the pid it identifies a process for good
};

// Empty if there is no such process.
std::optional<ProcessRecord> read_process(pid_t pid);

}  // namespace unisono::base
