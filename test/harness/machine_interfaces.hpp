// SPDX-License-Identifier: BSD-3-Clause
// The network interfaces of the virtual machine of `./dev vm` (scripts/vm/devices.sh): test hosts
// take one each in place of a veth, so that programs run in their drivers. A hub joins them. They
// go back to the machine's own network namespace with the hosts. Test programs without threads.
#pragma once

#include <fmt/format.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <string>

#include "base/descriptor.hpp"

namespace unisono::harness {

// How many the machine has; 0 outside of it.
inline int machine_interfaces() {
  const char* const text = getenv("VM_DEVICES");
  return text == nullptr ? 0 : std::stoi(text);
}

// The name of that of a host, by its Ethernet address 02:00:00:00:00:(host + 1). Waits until it is
// back: the kernel ends a namespace some time after its last process.
inline std::string interface_of_machine(int host) {
  const base::Descriptor question(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const unsigned char wanted[6] = {2, 0, 0, 0, 0, static_cast<unsigned char>(host + 1)};
  while (true) {
    std::string found;
    struct if_nameindex* const all = if_nameindex();
    for (const auto* each = all; each != nullptr && each->if_index != 0; ++each) {
      ifreq request = {};
      std::strncpy(request.ifr_name, each->if_name, sizeof request.ifr_name - 1);
      if (ioctl(question.get(), SIOCGIFHWADDR, &request) != 0) continue;
      if (std::memcmp(request.ifr_hwaddr.sa_data, wanted, sizeof wanted) == 0) {
        found = each->if_name;
      }
    }
    if (all != nullptr) if_freenameindex(all);
    if (!found.empty()) return found;
    sched_yield();
  }
}

// A line for `ip -batch` that moves it into a network namespace, a file or a process there, under
// a name that it has there.
inline std::string move_interface(int host, const std::string& network, const std::string& name) {
  return fmt::format("link set dev {} netns {} name {}\n", interface_of_machine(host), network,
                     name);
}

}  // namespace unisono::harness
