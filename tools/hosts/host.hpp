// SPDX-License-Identifier: BSD-3-Clause
// One test host: a process with namespaces of its own for the network, the hostname, IPC and
// mounts, in which others find /dev/shm empty and private, /proc and /sys of their own and the
// set's /etc/hosts. It does nothing but hold them until it is killed. Process 1 of the set forks
// it.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"

namespace unisono::tools {

// Forks a host and returns when its namespaces are made; its network has no link yet.
base::Result<pid_t> start_host(const std::string& name, const std::string& hosts_file);

}  // namespace unisono::tools
