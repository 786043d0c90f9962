// SPDX-License-Identifier: BSD-3-Clause
// Runs a command on test hosts: a child takes on a host's namespaces, keeps the caller's working
// directory and environment, and dies with the caller. Works from the machine and from a host of
// the same set, so that a launcher on one host can start ranks on the others. The calling process
// must have no threads (it forks).
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "hosts/registry.hpp"

namespace unisono::tools {

// Makes the children that the caller will fork processes of the set; for good.
base::Status join_processes(const HostsRecord& record);
// In such a child: moves it into the host's namespaces.
base::Status become_process_of(const HostEntry& host);

// Runs the command on one host, forwards signals, and returns its exit status as a shell would (128
// + signal; 127: not found; 126: cannot be executed).
base::Result<int> run_on_host(const HostsRecord& record, const HostEntry& host,
                              const std::vector<std::string>& command);

// Runs it on all hosts at once, without input, each line of output after "[host] ". Returns the
// first exit status other than 0, in the order of hosts.
base::Result<int> run_on_all_hosts(const HostsRecord& record,
                                   const std::vector<std::string>& command);

}  // namespace unisono::tools
