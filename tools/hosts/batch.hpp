// SPDX-License-Identifier: BSD-3-Clause
// Runs ip(8), bridge(8) and tc(8) of iproute2 with a batch of commands, here or in another
// process's network namespace. One process for a whole batch: a hundred hosts are made in a second.
// The calling process must have no threads (it forks).
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"

namespace unisono::tools {

// `program` reads `commands` with -batch. `network_of`: the process whose network namespace is
// used, as the caller numbers processes; 0: the caller's. An error contains the program's output.
base::Status run_batch(const char* program, const std::string& commands, pid_t network_of = 0);

}  // namespace unisono::tools
