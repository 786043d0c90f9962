// SPDX-License-Identifier: BSD-3-Clause
#include "nic/loader/interface.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/descriptor.hpp"

namespace unisono::nic {
namespace {

std::string driver_of(const std::string& interface) {
  const base::Descriptor question(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ethtool_drvinfo answer = {};
  answer.cmd = ETHTOOL_GDRVINFO;
  ifreq request = {};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(&answer);
  return ioctl(question.get(), SIOCETHTOOL, &request) == 0 ? std::string(answer.driver) : "";
}

int mtu_of(const std::string& interface) {
  const base::Descriptor question(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  return ioctl(question.get(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

void take_link(const sockaddr* address, Interface& interface) {
  sockaddr_ll link = {};
  std::memcpy(&link, address, sizeof link);
  interface.ethernet = link.sll_hatype == ARPHRD_ETHER && link.sll_halen == sizeof interface.mac;
  if (interface.ethernet) std::memcpy(interface.mac, link.sll_addr, sizeof interface.mac);
}

std::uint32_t ipv4_in(const sockaddr* address) {
  sockaddr_in internet = {};
  if (address != nullptr) std::memcpy(&internet, address, sizeof internet);
  return internet.sin_addr.s_addr;
}

}  // namespace

base::Result<std::vector<Interface>> read_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    return base::Error{base::Code::system,
                       fmt::format("list the network interfaces: {}", std::strerror(errno))};
  }
  std::map<std::string, Interface> by_name;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_LOOPBACK) != 0 || entry->ifa_addr == nullptr) continue;
    Interface& interface = by_name[entry->ifa_name];
    interface.up = (entry->ifa_flags & IFF_UP) != 0;
    if (entry->ifa_addr->sa_family == AF_PACKET) take_link(entry->ifa_addr, interface);
    if (entry->ifa_addr->sa_family == AF_INET && interface.ipv4 == 0) {
      interface.ipv4 = ipv4_in(entry->ifa_addr);
      interface.mask = ipv4_in(entry->ifa_netmask);
    }
  }
  freeifaddrs(first);
  std::vector<Interface> interfaces;
  for (auto& [name, interface] : by_name) {
    interface.name = name;
    interface.index = if_nametoindex(name.c_str());
    interface.driver = driver_of(name);
    interface.mtu = mtu_of(name);
    interfaces.push_back(interface);
  }
  std::ranges::sort(interfaces, {}, &Interface::index);
  return interfaces;
}

base::Result<Interface> read_interface(const std::string& name) {
  UNISONO_ASSIGN(const std::vector<Interface> interfaces, read_interfaces());
  const auto found = std::ranges::find(interfaces, name, &Interface::name);
  if (found != interfaces.end()) return *found;
  if (if_nametoindex(name.c_str()) != 0) {
    std::string others;
    for (const Interface& each : interfaces) others += (others.empty() ? "" : ", ") + each.name;
    return base::Error{
        base::Code::argument,
        fmt::format(
            "interface {} is the loopback, by which no other host is reached; name one that "
            "leads to the other hosts{}",
            name, others.empty() ? "; this host has none" : ": " + others)};
  }
  return base::Error{base::Code::argument,
                     fmt::format("there is no interface {}; `ip link` lists them", name)};
}

std::string ipv4_text(std::uint32_t ipv4) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &ipv4, text, sizeof text);
  return text;
}

std::string mac_text(const std::uint8_t (&mac)[6]) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3],
                     mac[4], mac[5]);
}

}  // namespace unisono::nic
