// SPDX-License-Identifier: BSD-3-Clause
// NicBlocks: a rank's part of a group in the program's tables that carries blocks of hosts: those
// of allgathers (nic_allgather.hpp), or those that roots multicast (nic_broadcast.hpp). The ranks
// of a host share the group's memory. Control path.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "engine/nic/group_number.hpp"
#include "nic/lowering/row.hpp"
#include "nic/memory/wake_ring.hpp"
#include "nic/port/allgather_port.hpp"
#include "nic/service/client.hpp"

namespace unisono::engine {

struct NicBlocks {
  std::unique_ptr<nic::Membership> member;
  std::unique_ptr<nic::WakeRing> wakes;  // none: the program does not wake this rank
  std::unique_ptr<nic::AllgatherPort> port;

  // The rank at place 0 joins at the daemon, before the others of its host; the row ends with its
  // client's connection.
  static base::Result<NicBlocks> join(nic::ServiceClient& client, const unisono_nic_row& asked,
                                      int place);
};

// A host's row where blocks go singly: each by one multicast or, where the network carries none,
// from host to host. `group`: that of the hosts' tree, with its multicast address.
base::Result<unisono_nic_row> make_block_row(int host, nic::GroupAddresses group, NicWay way);
// ... and where short ones are joined to messages of doubling size.
base::Result<unisono_nic_row> make_joined_row(int host, nic::GroupAddresses group);

}  // namespace unisono::engine
