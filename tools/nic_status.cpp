// SPDX-License-Identifier: BSD-3-Clause
#include "nic_status.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <bit>

#include "nic/device.hpp"

namespace unisono::tools {
namespace {

// Whether unisonod can serve it, and how.
std::string usable_text(const nic::Interface& interface) {
  if (!interface.ethernet) return "no: it is no Ethernet interface";
  if (!interface.up) return "no: it is down";
  if (interface.ipv4 == 0) return "no: it has no IPv4 address";
  if (interface.driver == "veth") return "yes, in generic mode: its frames are socket buffers";
  return "yes, in native mode if its driver can, otherwise in generic mode";
}

std::string groups_text(const nic::ServiceStatus& status) {
  std::string out =
      fmt::format("  groups: {} of all users, {} KiB\n", status.groups, status.bytes / 1024);
  for (const nic::GroupLine& group : status.own_groups) {
    out += fmt::format(
        "    job {:08x} communicator {}: rank {}, {} children, {} KiB, process {} of user {}\n",
        group.job, group.communicator, group.rank, group.children, group.bytes / 1024,
        group.process, group.user);
  }
  return out + fmt::format("  you may have {} more groups and {} KiB\n", status.served.groups_left,
                           status.served.bytes_left / 1024);
}

std::string counters_text(const nic::ServiceStatus& status) {
  std::string out = "  packets:\n";
  for (std::size_t i = 0; i < status.counters.size(); ++i) {
    out += fmt::format("    {}: {}\n", nic::counter_name(static_cast<unisono_nic_counter>(i)),
                       status.counters[i]);
  }
  return out;
}

}  // namespace

std::string interfaces_text(std::span<const nic::Interface> interfaces) {
  std::string out = "interfaces:\n";
  if (interfaces.empty()) out += "  none but the loopback\n";
  for (const nic::Interface& interface : interfaces) {
    out += fmt::format("  {}:\n", interface.name);
    out += fmt::format("    driver: {}\n", interface.driver.empty() ? "none" : interface.driver);
    if (interface.ipv4 != 0) {
      out += fmt::format("    address: {}/{}\n", nic::ipv4_text(interface.ipv4),
                         std::popcount(interface.mask));
    }
    out += fmt::format("    usable: {}\n", usable_text(interface));
  }
  return out;
}

std::string service_text(const std::string& path, const base::Result<nic::ServiceStatus>& status) {
  if (!status.ok()) return fmt::format("unisonod: none\n  because: {}\n", status.error().message);
  const nic::Served& served = status->served;
  std::string out = "unisonod:\n";
  out += fmt::format("  socket: {}\n", path);
  out += fmt::format("  process: {}, {} connections\n", status->process, status->connections);
  out += fmt::format("  interface: {} ({}), {} mode\n", served.interface, served.driver,
                     served.native != 0 ? "native" : "generic");
  out += fmt::format("  address: {} port {}, {}\n", nic::ipv4_text(served.own.ipv4),
                     ntohs(served.own.port), nic::mac_text(served.own.mac));
  return out + groups_text(*status) + counters_text(*status);
}

}  // namespace unisono::tools
