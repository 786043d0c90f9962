// SPDX-License-Identifier: BSD-3-Clause
// The machine of a measurement: processor, cores, kernel, compiler. Nothing that names a person or
// a host. Any thread.
#pragma once

#include <string>

namespace unisono::tools {

struct Machine {
  std::string processor;  // "AMD EPYC 7B13", "unknown" where the system does not say
  int cores = 0;          // of the machine
  int usable_cores = 0;   // limited by the affinity mask and the quota of the cgroup
  std::string kernel;     // "Linux 6.1.0"
  std::string compiler;   // that compiled this binary
};

Machine describe_machine();

// At least 1.
int usable_cores();

}  // namespace unisono::tools
