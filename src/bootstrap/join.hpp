// SPDX-License-Identifier: BSD-3-Clause
// The rank's side of the bootstrap, from a job's description to a JobInfo. Control path; blocks,
// with a deadline in every phase. Any thread.
#pragma once

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "bootstrap/job_info.hpp"
#include "bootstrap/launchers/launcher.hpp"

namespace unisono::bootstrap {

// Takes UNISONO_START_TIMEOUT, UNISONO_SHARED_LIMIT and UNISONO_NETWORKS from `settings`. Rank 0
// serves the rendezvous if the address was derived, or if no process listens at a given one.
// `listener`: the socket that listens at the address, if rank 0 has chosen it. Errors: timeout
// (names the missing ranks), argument (key, size, a rank twice, hosts that do not fit together),
// rank_lost, unsupported (pid namespaces), resources, system.
base::Result<JobInfo> join(const JobDescription& job, const base::Settings& settings,
                           base::Descriptor listener = base::Descriptor());

}  // namespace unisono::bootstrap
