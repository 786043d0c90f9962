// SPDX-License-Identifier: BSD-3-Clause
// The document of `unisono nic status --json`, for programs that watch hosts
// (docs/reference/nic-status.md). Its version grows when a key changes its meaning or goes; new
// keys may appear in the same version. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "nic/loader/interface.hpp"
#include "nic/nic_status.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::tools {

inline constexpr int kStatusVersion = 1;

// `path`: the daemon's socket; `all`: the daemon's answer for each interface that it serves, or why
// there is none.
std::string status_json(const Capability& capability, std::span<const nic::Interface> interfaces,
                        const std::string& path,
                        const base::Result<std::vector<nic::ServiceStatus>>& all);

}  // namespace unisono::tools
