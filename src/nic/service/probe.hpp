// SPDX-License-Identifier: BSD-3-Clause
// Asks this host's unisonod for the host's capabilities, without joining a group. So a job knows at
// its start which hosts have a NIC path. Without unisonod, that is one system call. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "nic/service/capabilities.hpp"
#include "nic/service/client.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::nic {

// Whether a process may use an interface of that name and IPv4 address (network order).
using MayUse = std::function<bool(const std::string& name, std::uint32_t ipv4)>;

// Has the daemon serve this connection on its first interface that the process may use. If it may
// use none of them, it gets the first one that works. The NIC path need not be in the network that
// the job uses.
base::Result<Served> choose_interface(ServiceClient& client, const MayUse& may_use);

// `path`: of the daemon's socket; `preferences`: this rank's; `may_use`: by UNISONO_NETWORKS. The
// error says why there is none.
base::Result<Capabilities> probe_capabilities(const std::string& path,
                                              const Preferences& preferences,
                                              const MayUse& may_use);

// The same, once the daemon of this host has described itself.
Capabilities capabilities_of(const Served& served, const Preferences& preferences);

}  // namespace unisono::nic
