// SPDX-License-Identifier: BSD-3-Clause
// This host's network interfaces as reported by the kernel: names, drivers, addresses. Needs no
// privilege. Control path; any thread, for the calling thread's network namespace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace unisono::nic {

// Packets of the NIC path are never cut.
inline constexpr int kLeastMtu = 1500;

struct Interface {
  std::string name;
  std::string driver;  // "veth"; empty where the interface has none to name
  std::uint32_t index = 0;
  std::uint8_t mac[6] = {};
  std::uint32_t ipv4 = 0;  // the first address, network order; 0: none
  std::uint32_t mask = 0;  // of its network, network order
  int mtu = 0;             // bytes of the largest IP packet that it sends unfragmented
  bool up = false;
  bool ethernet = false;
};

// All but the loopback, by index.
base::Result<std::vector<Interface>> read_interfaces();
base::Result<Interface> read_interface(const std::string& name);

// "10.0.0.1", of an address in network order.
std::string ipv4_text(std::uint32_t ipv4);
// "02:00:00:00:00:01"
std::string mac_text(const std::uint8_t (&mac)[6]);

}  // namespace unisono::nic
