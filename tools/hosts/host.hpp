// SPDX-License-Identifier: BSD-3-Clause
// One test host: a process with its own namespaces for the network, the hostname, IPC and mounts.
// Processes in it have an empty, private /dev/shm, their own /proc and /sys, and the set's
// /etc/hosts. It only holds the namespaces until it is killed. Process 1 of the set forks it.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"

namespace unisono::tools {

// Forks a host and returns when its namespaces are made; its network has no link yet.
base::Result<pid_t> start_host(const std::string& name, const std::string& hosts_file);

}  // namespace unisono::tools
