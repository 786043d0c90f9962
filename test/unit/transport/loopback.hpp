// SPDX-License-Identifier: BSD-3-Clause
// This host's loopback addresses, which every test may use: nothing sent there leaves the machine.
// Asks the system each time; any thread.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "transport/ip/interfaces.hpp"

namespace unisono::transport {

// The loopback address of a family.
inline base::Result<LocalAddress> loopback(Family family) {
  UNISONO_ASSIGN(const std::vector<LocalAddress> locals, local_addresses());
  for (const LocalAddress& local : locals) {
    if (local.address.family == family && local.address.is_loopback()) return local;
  }
  return base::Error{base::Code::unsupported, family == Family::v4
                                                  ? "no loopback interface with IPv4 here"
                                                  : "no loopback interface with IPv6 here"};
}

}  // namespace unisono::transport
