// SPDX-License-Identifier: BSD-3-Clause
// Which calls go by the NIC path, on a communicator that has it. It depends on nothing that differs
// between ranks, so all decide alike. Pure; any thread.
#pragma once

#include "base/result.hpp"
#include "engine/nic/nic_group.hpp"
#include "group/call.hpp"
#include "select/select.hpp"
#include "topology/host_map.hpp"

namespace unisono::group {

// What is the same at all ranks of a communicator that has the path.
struct NicCommunicator {
  const topology::HostMap& hosts;
  nic::Preferences preferences = {};
};

// What `rank` does; the error says why the call stays with the host engine. `choice`: of the
// algorithm there.
base::Result<engine::NicCall> nic_call_of(const Call& call, const select::Choice& choice,
                                          const NicCommunicator& path, int rank);

}  // namespace unisono::group
