// SPDX-License-Identifier: BSD-3-Clause
#include "engine/nic/probe.hpp"

#include "nic/service/client.hpp"

namespace unisono::engine {

base::Result<NicOffer> probe_offer(const std::string& path) {
  UNISONO_ASSIGN(const auto client, nic::ServiceClient::connect(path));
  UNISONO_ASSIGN(const nic::Served served, client->describe());
  return NicOffer{served.own, served.mask, 1};
}

}  // namespace unisono::engine
