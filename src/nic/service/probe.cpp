// SPDX-License-Identifier: BSD-3-Clause
#include "nic/service/probe.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace unisono::nic {
namespace {

// The first digits of a random number; 0, which makes hosts one machine, if it cannot be read.
std::uint32_t machine_number() {
  std::uint32_t number = 0;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> std::hex >> number;
  return number;
}

}  // namespace

Capabilities capabilities_of(const Served& served, const Preferences& preferences) {
  return {.address = served.own,
          .mask = served.mask,
          .available = 1,
          .machine = machine_number(),
          .processors = static_cast<std::uint32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))),
          .preferences = preferences};
}

base::Result<Served> choose_interface(ServiceClient& client, const MayUse& may_use) {
  UNISONO_ASSIGN(const Served first, client.describe());
  if (may_use(first.interface, first.own.ipv4)) return first;
  std::istringstream names(first.all);
  for (std::string name; names >> name;) {
    if (name == first.interface) continue;
    const auto other = client.describe(name);  // refused: it is down, or has no address
    if (other.ok() && may_use(name, other->own.ipv4)) return other;
  }
  return client.describe(first.interface);
}

base::Result<Capabilities> probe_capabilities(const std::string& path,
                                              const Preferences& preferences,
                                              const MayUse& may_use) {
  UNISONO_ASSIGN(const auto client, ServiceClient::connect(path));
  UNISONO_ASSIGN(const Served served, choose_interface(*client, may_use));
  return capabilities_of(served, preferences);
}

}  // namespace unisono::nic
