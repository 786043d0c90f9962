// SPDX-License-Identifier: BSD-3-Clause
// The network as a rank of a job would see it (network_info.hpp).
#include "network_info.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "transport/udp/options.hpp"
#include "transport/udp/udp.hpp"
#include "wire/key.hpp"

namespace unisono::tools {
namespace {

std::string yes_no(bool value) { return value ? "yes" : "no"; }

std::string multicast_text(const transport::Udp& udp, const transport::UdpOptions& options) {
  if (!options.group) return "off";
  if (!udp.limits().multicast) return fmt::format("no ({})", udp.multicast_note());
  return fmt::format("to {} in this try, ttl {}; whether the network carries it, a job finds out",
                     endpoint_text(options.group->endpoint), options.group->ttl);
}

}  // namespace

base::Result<std::string> network_text(const std::string& peer, const base::Settings& settings) {
  UNISONO_ASSIGN(const transport::IpAddress address, transport::parse_ip(peer));
  UNISONO_ASSIGN(const transport::NetworkSettings network, transport::network_settings(settings));
  // A key as a job has it, so the group is one that no running job has.
  UNISONO_ASSIGN(const wire::Key key, wire::random_key());
  const std::array<transport::IpAddress, 1> peers{address};
  UNISONO_ASSIGN(const transport::UdpOptions options,
                 transport::udp_options(network, wire::job_of(key), 0, peers));
  UNISONO_ASSIGN(const std::unique_ptr<transport::Udp> udp, transport::Udp::open(options));
  std::string out = "network:\n";
  const auto line = [&out](std::string_view name, const std::string& value) {
    out += fmt::format("  {}: {}\n", name, value);
  };
  line("towards", ip_text(address));
  line("address", ip_text(options.local.address));
  line("interface", options.local.interface);
  line("because", options.why);
  line("datagram",
       fmt::format(
           "{} bytes{}; whether the path carries them, a job finds out", udp->limits().max_payload,
           network.most_datagram == udp->limits().max_payload ? " (UNISONO_DATAGRAM)" : ""));
  line("multicast", multicast_text(*udp, options));
  line("segmentation by the kernel", yes_no(udp->features().segmentation));
  line("coalescing by the kernel", yes_no(udp->features().coalescing));
  line("receive buffer", fmt::format("{} bytes", udp->features().receive_bytes));
  line("send buffer", fmt::format("{} bytes", udp->features().send_bytes));
  return out;
}

}  // namespace unisono::tools
