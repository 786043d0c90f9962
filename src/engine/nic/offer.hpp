// SPDX-License-Identifier: BSD-3-Clause
// Offer: what a rank says of its host's NIC path, so that all decide alike: the NIC path is used by
// all ranks of a group or by none. Offers are exchanged as bytes. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "base/settings.hpp"
#include "nic/program/tables.h"

namespace unisono::engine {

// What a user has asked for, on all ranks alike.
struct NicWishes {
  std::int32_t splits = -1;  // how often long vectors are halved; -1: as it pays
  base::Toggle rooted = base::Toggle::automatic;  // whether what has a root goes there
  static NicWishes of(const base::Settings& settings);
};

struct NicOffer {
  unisono_nic_address address = {};
  std::uint32_t mask = 0;       // of its network, network order
  std::uint32_t available = 0;  // 0: this rank has no NIC path
  std::uint32_t machine = 0;    // equal numbers: hosts that share their processors
  std::uint32_t processors = 1;
  NicWishes wishes = {};
};

// By host. Every rank that has the same offers comes to the same; the error says why not, and names
// hosts by `ranks`, one of each; none given: one a host, by rank.
base::Status agree(std::span<const NicOffer> offers, std::span<const int> ranks = {});

}  // namespace unisono::engine
