// SPDX-License-Identifier: BSD-3-Clause
// Which calls go by the NIC path, on a communicator that has it. It depends on nothing that differs
// between ranks, so all decide alike. Pure; any thread.
#pragma once

#include "base/result.hpp"
#include "engine/nic/nic_group.hpp"
#include "group/call.hpp"
#include "schedule/host_map.hpp"
#include "select/select.hpp"

namespace unisono::group {

// What `rank` does, of ranks that are on these hosts; the error says why the call stays with the
// host engine. `choice`: of the algorithm there.
base::Result<engine::NicCall> nic_call_of(const Call& call, const select::Choice& choice,
                                          const schedule::HostMap& hosts, int rank);

}  // namespace unisono::group
