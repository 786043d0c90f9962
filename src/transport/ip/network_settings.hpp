// SPDX-License-Identifier: BSD-3-Clause
// Network settings: the user's settings for a job's network between hosts, and the multicast group
// derived from a job's identity. Control path, pure; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "transport/ip/ip.hpp"
#include "transport/ip/network_list.hpp"

namespace unisono::transport {

struct NetworkSettings {
  NetworkList networks;                              // UNISONO_NETWORKS
  base::Toggle multicast = base::Toggle::automatic;  // UNISONO_MULTICAST
  std::optional<Endpoint> group;                     // UNISONO_MULTICAST_GROUP; port 0: derived
  int ttl = 1;                                       // UNISONO_MULTICAST_TTL
  std::size_t most_datagram = 0;                     // UNISONO_DATAGRAM; 0: auto
};

// Errors: argument, with the name of the setting.
base::Result<NetworkSettings> network_settings(const base::Settings& settings);

// The default group of a job: an address in 239.255.0.0/16 (site-local) or ff12::/16 (one link, not
// assigned), and a port. 30 bits of the job's identity keep jobs apart.
Endpoint group_of_job(std::uint32_t job, Family family);

}  // namespace unisono::transport
