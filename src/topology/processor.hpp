// SPDX-License-Identifier: BSD-3-Clause
// The names of this machine's processor and kernel, as the system says them. They name neither a
// person nor a host. Control path; any thread.
#pragma once

#include <string>

namespace unisono::topology {

std::string processor_name();  // "AMD EPYC 7B13"; "unknown" where the system does not say
std::string kernel_name();     // "Linux 6.1.0"

}  // namespace unisono::topology
