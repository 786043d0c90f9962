// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ip/network_settings.hpp"

#include <fmt/format.h>

namespace unisono::transport {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Setting;

// The dynamic ports, which are assigned to no service. Ranks' own ports lie there too, but not at
// the group's address.
constexpr std::uint32_t kFirstPort = 49152;
constexpr std::uint32_t kPorts = 65536 - kFirstPort;

Error about(Setting id, const Error& error) {
  return {error.code, fmt::format("{}: {}", base::setting_row(id).name, error.message)};
}

Result<Endpoint> parse_group(const std::string& text) {
  const Result<Endpoint> group = parse_endpoint(text);
  if (!group.ok()) return about(Setting::multicast_group, group.error());
  if (!group->address.is_multicast()) {
    return Error{Code::argument,
                 fmt::format("UNISONO_MULTICAST_GROUP={} is no multicast address; those of IPv4 "
                             "begin with 224 to 239, those of IPv6 with ff",
                             text)};
  }
  return *group;
}

}  // namespace

Result<NetworkSettings> network_settings(const base::Settings& settings) {
  NetworkSettings result;
  const Result<NetworkList> networks = NetworkList::parse(settings.text(Setting::networks));
  if (!networks.ok()) return about(Setting::networks, networks.error());
  result.networks = *networks;
  result.multicast = settings.toggle(Setting::multicast);
  result.ttl = static_cast<int>(settings.integer(Setting::multicast_ttl));
  const std::int64_t datagram = settings.bytes(Setting::datagram);
  if (datagram > 0) result.most_datagram = static_cast<std::size_t>(datagram);
  const std::string& group = settings.text(Setting::multicast_group);
  if (!group.empty()) {
    UNISONO_ASSIGN(result.group, parse_group(group));
  }
  return result;
}

Endpoint group_of_job(std::uint32_t job, Family family) {
  Endpoint group;
  group.address.family = family;
  group.port = static_cast<std::uint16_t>(kFirstPort + job % kPorts);
  const std::uint32_t rest = job / kPorts;
  auto& bytes = group.address.bytes;
  if (family == Family::v4) {
    bytes[0] = 239;
    bytes[1] = 255;
    // 239.255.255 is set apart for services at fixed distances from the end of each range.
    bytes[2] = static_cast<std::uint8_t>((rest >> 8) % 255);
    bytes[3] = static_cast<std::uint8_t>(rest);
    return group;
  }
  bytes[0] = 0xff;
  bytes[1] = 0x12;
  // Numbers of groups that hosts choose themselves have the highest bit set (RFC 3307).
  const std::uint32_t number = 0x80000000U | job;
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[12 + i] = static_cast<std::uint8_t>(number >> (24 - 8 * i));
  }
  return group;
}

}  // namespace unisono::transport
