// SPDX-License-Identifier: BSD-3-Clause
#include "transport/udp/factory.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "transport/udp/options.hpp"
#include "transport/udp/udp.hpp"
#include "wire/key.hpp"

namespace unisono::transport {
namespace {

std::string yes_no(bool value) { return value ? "yes" : "no"; }

std::string multicast_text(const Udp& udp, const UdpOptions& options) {
  if (!options.group) return "off";
  if (!udp.limits().multicast) return fmt::format("no ({})", udp.multicast_note());
  return fmt::format("to {} in this try, ttl {}; whether the network carries it, a job finds out",
                     endpoint_text(options.group->endpoint), options.group->ttl);
}

}  // namespace

base::Result<std::unique_ptr<JobDatagrams>> open_udp(const base::Settings& settings, int rank,
                                                     const IpAddress& towards) {
  UNISONO_ASSIGN(NetworkSettings network, network_settings(settings));
  const std::array peers{towards};
  NetworkSettings without_group = network;
  without_group.multicast = base::Toggle::off;
  UNISONO_ASSIGN(UdpOptions options, udp_options(without_group, 0, rank, peers));
  options.network = std::move(network);
  UNISONO_ASSIGN(std::unique_ptr<Udp> udp, Udp::open(options));
  return std::unique_ptr<JobDatagrams>(std::move(udp));
}

base::Result<std::string> describe_udp(const base::Settings& settings, const IpAddress& towards) {
  UNISONO_ASSIGN(const NetworkSettings network, network_settings(settings));
  // A random key, as a job has, selects a group that no running job uses.
  UNISONO_ASSIGN(const wire::Key key, wire::random_key());
  const std::array peers{towards};
  UNISONO_ASSIGN(const UdpOptions options, udp_options(network, wire::job_of(key), 0, peers));
  UNISONO_ASSIGN(const std::unique_ptr<Udp> udp, Udp::open(options));
  std::string out;
  const auto line = [&out](std::string_view name, const std::string& value) {
    out += fmt::format("  {}: {}\n", name, value);
  };
  line("towards", ip_text(towards));
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

}  // namespace unisono::transport
