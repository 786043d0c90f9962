// SPDX-License-Identifier: BSD-3-Clause
// Which calls go by the NIC path, on a communicator that has it. It depends on nothing that differs
// between ranks, so all decide alike. Pure; any thread.
#pragma once

#include "base/result.hpp"
#include "plan/call.hpp"
#include "plan/nic_call.hpp"
#include "select/select.hpp"
#include "topology/host_map.hpp"

namespace unisono::plan {

// The properties of a communicator with the path; the same at all its ranks.
struct NicCommunicator {
  const topology::HostMap& hosts;
  nic::Preferences preferences = {};
};

// The part of `rank`; the error gives the reason why the call stays with the host engine. `choice`:
// of the algorithm there.
base::Result<NicCall> nic_call_of(const Call& call, const select::Choice& choice,
                                  const NicCommunicator& path, int rank);

}  // namespace unisono::plan
