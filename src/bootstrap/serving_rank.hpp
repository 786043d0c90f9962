// SPDX-License-Identifier: BSD-3-Clause
// Rank 0's part in the rendezvous of its job where no launcher serves it: a thread serves until
// rank 0 has joined. Also how a rank that cannot join tells the others so. Control path; blocks,
// with a deadline in every phase. Any thread.
#pragma once

#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "bootstrap/address.hpp"
#include "bootstrap/rendezvous/rendezvous_client.hpp"

namespace unisono::bootstrap {

// Serves the rendezvous in a thread until this rank has joined it. `listener`: as of
// Rendezvous::open(). If it cannot listen at a tcp address, it tells the ranks of its host.
base::Result<Joined> serve_and_join(const JoinRequest& request,
                                    base::Descriptor listener = base::Descriptor());
// Joins if a process listens at the address, otherwise serves as well.
base::Result<Joined> join_or_serve(const JoinRequest& request);

// For a rank that has no connection, perhaps because it has no descriptor left: tells the others
// that it cannot start. Returns when they can know it, or after UNISONO_START_TIMEOUT. Does nothing
// if `request.failure` is set. `heard`: by rank, whether it knows already.
void tell_others(const JoinRequest& request, const base::Error& error,
                 const std::vector<bool>& heard = {});

// The Unix socket where rank 0 tells the ranks of its host that it cannot listen at the tcp address
// of the job.
Address notice_address(const JoinRequest& request);

}  // namespace unisono::bootstrap
