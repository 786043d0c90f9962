// SPDX-License-Identifier: BSD-3-Clause
// Network settings: what the user's settings and the job's identity say of its sockets: which local
// address, which multicast group. Control path; pure besides udp_options(), which asks the system
// for addresses and routes; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "transport/udp/network_list.hpp"
#include "transport/udp/udp.hpp"

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

// The group of a job that says nothing else: in 239.255.0.0/16 (the site's own) or ff12::/16 (one
// link, not assigned), and a port; 30 bits of the job's identity keep jobs apart.
Endpoint group_of_job(std::uint32_t job, Family family);

// Where a job multicasts, as settings and identity say, from a local address; none if that is off.
// Errors: argument, if the group is of another family than the address.
base::Result<std::optional<MulticastGroup>> multicast_group(const NetworkSettings& settings,
                                                            std::uint32_t job,
                                                            const IpAddress& local);

// For rank `rank` of a job whose identity is `job` (wire/key.hpp), towards `peers` of which one at
// least is known. Errors: those of local_addresses(), choose_address() and multicast_group().
base::Result<UdpOptions> udp_options(const NetworkSettings& settings, std::uint32_t job, int rank,
                                     std::span<const IpAddress> peers);

}  // namespace unisono::transport
