// SPDX-License-Identifier: BSD-3-Clause
#include "transport/udp/options.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace unisono::transport {

using base::Code;
using base::Error;
using base::Result;

Result<std::optional<MulticastGroup>> multicast_group(const NetworkSettings& settings,
                                                      std::uint32_t job, const IpAddress& local) {
  if (settings.multicast == base::Toggle::off) return std::optional<MulticastGroup>();
  const Endpoint derived = group_of_job(job, local.family);
  MulticastGroup group{.endpoint = settings.group.value_or(derived), .ttl = settings.ttl};
  if (group.endpoint.port == 0) group.endpoint.port = derived.port;
  if (group.endpoint.address.family != local.family) {
    return Error{Code::argument,
                 fmt::format("UNISONO_MULTICAST_GROUP={} is of another family than {}, from which "
                             "the peers are reached",
                             endpoint_text(group.endpoint), ip_text(local))};
  }
  return std::optional(group);
}

Result<UdpOptions> udp_options(const NetworkSettings& settings, std::uint32_t job, int rank,
                               std::span<const IpAddress> peers) {
  UNISONO_ASSIGN(const std::vector<LocalAddress> locals, local_addresses());
  UNISONO_ASSIGN(ChosenAddress chosen,
                 choose_address(peers, settings.networks, locals, source_towards));
  UdpOptions options;
  options.rank = rank;
  options.local = std::move(chosen.local);
  options.why = std::move(chosen.why);
  options.most_payload = settings.most_datagram;
  UNISONO_ASSIGN(options.group, multicast_group(settings, job, options.local.address));
  return options;
}

}  // namespace unisono::transport
