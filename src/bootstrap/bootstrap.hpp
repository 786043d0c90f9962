// SPDX-License-Identifier: BSD-3-Clause
// Bootstrap: how the ranks of a job find each other. The ranks of one host come to share a memory
// file, and those of several hosts learn each other's addresses. A rank describes its job, then
// joins it. Control path; blocks, with a deadline in every phase. Any thread, once per process.
#pragma once

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "bootstrap/job_info.hpp"
#include "bootstrap/launchers/launcher.hpp"

namespace unisono::bootstrap {

// The job that this process's environment describes (launcher.hpp); a job of one rank if it
// describes none. From here on this process's log and check messages name the rank.
base::Result<JobDescription> describe_own_job(const base::Settings& settings);

// Errors: those of launchers/stores.hpp, choose_rendezvous_address.hpp and join.hpp.
base::Result<JobInfo> join_job(JobDescription job, const base::Settings& settings);

// Tells the other ranks of this process's job that it cannot start, so that none waits for it.
// Returns when they can know it, or after UNISONO_START_TIMEOUT. Settings with invalid values do
// not count meanwhile. Does nothing if the environment does not say which rank of which job this
// is.
void tell_failure(const base::Error& error);

}  // namespace unisono::bootstrap
