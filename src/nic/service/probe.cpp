// SPDX-License-Identifier: BSD-3-Clause
#include "nic/service/probe.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "nic/service/client.hpp"

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

base::Result<Capabilities> probe_capabilities(const std::string& path,
                                              const Preferences& preferences) {
  UNISONO_ASSIGN(const auto client, ServiceClient::connect(path));
  UNISONO_ASSIGN(const Served served, client->describe());
  return capabilities_of(served, preferences);
}

}  // namespace unisono::nic
