// SPDX-License-Identifier: BSD-3-Clause
// What `unisono nic status` says, from what the kernel and unisonod answer. Pure; any thread.
#pragma once

#include <span>
#include <string>

#include "base/result.hpp"
#include "nic/interface.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::tools {

// Indented "key: value" lines.
std::string interfaces_text(std::span<const nic::Interface> interfaces);
// `path`: the daemon's socket.
std::string service_text(const std::string& path, const base::Result<nic::ServiceStatus>& status);

}  // namespace unisono::tools
