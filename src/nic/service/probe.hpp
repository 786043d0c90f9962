// SPDX-License-Identifier: BSD-3-Clause
// Asks this host's unisonod for the host's capabilities, without joining a group. So a job knows at
// its start which hosts have a NIC path. Without unisonod, that is one system call. Any thread.
#pragma once

#include <string>

#include "base/result.hpp"
#include "nic/service/capabilities.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::nic {

// `path`: of the daemon's socket; `preferences`: this rank's. The error says why there is none.
base::Result<Capabilities> probe_capabilities(const std::string& path,
                                              const Preferences& preferences);

// The same, once the daemon of this host has described itself.
Capabilities capabilities_of(const Served& served, const Preferences& preferences);

}  // namespace unisono::nic
