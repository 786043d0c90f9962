// SPDX-License-Identifier: BSD-3-Clause
// The rank's side of the bootstrap: from a job's description to a Seat. Control path; blocks, with
// a deadline in every phase (finding the rendezvous, waiting for the other ranks). Any thread.
#pragma once

#include "base/result.hpp"
#include "base/settings.hpp"
#include "group/bootstrap/bootstrap.hpp"
#include "group/bootstrap/launcher.hpp"

namespace unisono::group {

// Takes UNISONO_START_TIMEOUT and UNISONO_SHARED_LIMIT from `settings`. Rank 0 hosts the rendezvous
// when the address was derived, or when nobody listens at a given one. Errors: timeout (names the
// missing ranks), argument (key, size, rank twice), rank_lost, unsupported (several hosts),
// resources, system.
base::Result<Seat> join(const JobDescription& job, const base::Settings& settings);

}  // namespace unisono::group
