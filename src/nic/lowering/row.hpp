// SPDX-License-Identifier: BSD-3-Clause
// From a node of a tree, or routes or messages of an allgather, to the row that the NIC program
// reads: names of ranks become addresses. Pure; any thread.
#pragma once

#include <span>

#include "nic/lowering/lower.hpp"
#include "nic/lowering/lower_allgather.hpp"
#include "nic/lowering/lower_doubling.hpp"
#include "nic/program/tables.h"

namespace unisono::nic {

// The ranks' addresses and the job's key.
struct GroupAddresses {
  unisono_nic_id id = {};
  unisono_key key = {};                        // of the job, for tags
  std::span<const unisono_nic_address> ranks;  // the address at which each rank's host listens
  // The multicast address for results, and for blocks that go to all; none: the network carries no
  // multicast.
  unisono_nic_address multicast = {};
  // Operations in flight: a power of two, at most UNISONO_NIC_DEPTH_MAX / 2. The results of as many
  // earlier ones are kept for ranks that lost them.
  std::uint32_t depth = 2;
  std::uint32_t waiters = 1;  // processes of this rank's host that may sleep until one is done
};

// Refused if the node sends the result on to more ranks than the program makes clones.
base::Result<unisono_nic_row> make_row(const Node& node, const GroupAddresses& group);

// A block that goes from its origin to all others goes in one packet if there is a multicast
// address. Refused if the rank sends more packets than a row can hold.
base::Result<unisono_nic_row> make_row(const Routes& routes, const GroupAddresses& group);

// Messages made by lower_doubling(). None of them is multicast.
base::Result<unisono_nic_row> make_row(const Doubling& doubling, const GroupAddresses& group);

// The Ethernet address of an IPv4 multicast group (RFC 1112): 01:00:5e and the lower 23 bits.
unisono_nic_address multicast_address(std::uint32_t ipv4, std::uint16_t port);  // network order

}  // namespace unisono::nic
