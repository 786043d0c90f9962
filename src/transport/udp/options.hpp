// SPDX-License-Identifier: BSD-3-Clause
// Options of Udp: the local address and the multicast group of its sockets, from the network
// settings and the job's identity. Control path; multicast_group() is pure, udp_options() asks the
// system for addresses and routes; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "transport/ip/network_settings.hpp"
#include "transport/udp/udp.hpp"

namespace unisono::transport {

// Where a job multicasts, as settings and identity say, from a local address; none if that is off.
// Errors: argument, if the group is of another family than the address.
base::Result<std::optional<MulticastGroup>> multicast_group(const NetworkSettings& settings,
                                                            std::uint32_t job,
                                                            const IpAddress& local);

// For rank `rank` of a job whose identity is `job` (wire/key.hpp). At least one of `peers` must be
// known. Errors: those of local_addresses(), choose_address() and multicast_group().
base::Result<UdpOptions> udp_options(const NetworkSettings& settings, std::uint32_t job, int rank,
                                     std::span<const IpAddress> peers);

}  // namespace unisono::transport
