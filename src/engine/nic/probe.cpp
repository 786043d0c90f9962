// SPDX-License-Identifier: BSD-3-Clause
#include "engine/nic/probe.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "nic/service/client.hpp"

namespace unisono::engine {
namespace {

// The first digits of a random number; 0, which makes hosts one machine, if it cannot be read.
std::uint32_t machine_number() {
  std::uint32_t number = 0;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> std::hex >> number;
  return number;
}

}  // namespace

NicOffer offer_of(const nic::Served& served, const NicWishes& wishes) {
  return {.address = served.own,
          .mask = served.mask,
          .available = 1,
          .machine = machine_number(),
          .processors = static_cast<std::uint32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))),
          .wishes = wishes};
}

base::Result<NicOffer> probe_offer(const std::string& path, const NicWishes& wishes) {
  UNISONO_ASSIGN(const auto client, nic::ServiceClient::connect(path));
  UNISONO_ASSIGN(const nic::Served served, client->describe());
  return offer_of(served, wishes);
}

}  // namespace unisono::engine
