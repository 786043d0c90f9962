// SPDX-License-Identifier: BSD-3-Clause
// The text of `unisono nic status`: the abilities of this host for the NIC path, its interfaces,
// and the answers of the system and of unisonod. The texts are pure. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "nic/loader/interface.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::tools {

// The requirements for unisonod on this host.
struct Capability {
  std::string daemon;              // unisonod's file; empty: it is not where it is installed
  bool has_program = false;        // unisonod was built with the NIC program
  std::string kernel;              // "6.18.44"
  std::uint64_t privileges = 0;    // effective capabilities of this process, by their numbers
  bool in_user_namespace = false;  // in a user namespace the kernel loads no programs
};
Capability read_capability();

// The names of the capabilities that are missing to start unisonod.
std::vector<std::string> missing_privileges(const Capability& capability);
// Why unisonod cannot serve the interface; empty if it can.
std::string why_unusable(const nic::Interface& interface);

// Indented "key: value" lines.
// `path`: the daemon's socket; `serves`: a daemon answers there.
std::string capability_text(const Capability& capability, const std::string& path, bool serves);
std::string interfaces_text(std::span<const nic::Interface> interfaces);
// `all`: the status of each interface. All of them have the same facts of the daemon as a whole.
std::string service_text(const std::string& path,
                         const base::Result<std::vector<nic::ServiceStatus>>& all);

}  // namespace unisono::tools
