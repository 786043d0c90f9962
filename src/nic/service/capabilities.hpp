// SPDX-License-Identifier: BSD-3-Clause
// Capabilities: the NIC path's features on a rank's host. The ranks of a group exchange them as
// bytes, so that all decide alike: either all ranks use the NIC path or none does. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "nic/program/tables.h"

namespace unisono::nic {

// User settings, which must be the same at all ranks.
struct Preferences {
  std::int32_t splits = -1;  // how often long vectors are halved; -1: as the cost model says
  base::Toggle rooted = base::Toggle::automatic;  // whether rooted collectives use the NIC path
  static Preferences of(const base::Settings& settings);
};

struct Capabilities {
  unisono_nic_address address = {};
  std::uint32_t mask = 0;       // of its network, network order
  std::uint32_t available = 0;  // 0: this rank has no NIC path
  std::uint32_t machine = 0;    // equal numbers: hosts that share their processors
  std::uint32_t processors = 1;
  Preferences preferences = {};
};

// By host. The error gives the reason why these hosts have no common NIC path. It names hosts by
// `ranks`, one of each; empty: one rank per host. Ranks with the same capabilities get the same
// answer.
base::Status check_capabilities(std::span<const Capabilities> hosts,
                                std::span<const int> ranks = {});

}  // namespace unisono::nic
