// SPDX-License-Identifier: BSD-3-Clause
// The network as a rank of a job would see it (network_info.hpp).
#include "info/network_info.hpp"

#include "transport/table.hpp"

namespace unisono::tools {

base::Result<std::string> network_text(const std::string& peer, const base::Settings& settings) {
  UNISONO_ASSIGN(const transport::IpAddress address, transport::parse_ip(peer));
  UNISONO_ASSIGN(const std::string lines,
                 transport::datagrams_rows().front().describe(settings, address));
  return "network:\n" + lines;
}

}  // namespace unisono::tools
