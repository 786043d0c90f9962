// SPDX-License-Identifier: BSD-3-Clause
// The start of a rank after the rendezvous: job, agent, world communicator. All ranks start, or
// each gets an error that names a rank that could not. A failing rank informs the others, and no
// rank starts before all have reported that they have everything. Control path.
#pragma once

#include <memory>

#include "comm/communicator.hpp"
#include "job/job.hpp"

namespace unisono::comm {

struct Started {
  std::unique_ptr<job::Job> job;  // outlives the world
  std::unique_ptr<Communicator> world;
};

// The arguments are Job::enter's.
base::Result<Started> start_rank(const bootstrap::JobInfo& info,
                                 std::shared_ptr<memory::JobMemory> memory,
                                 const base::Settings& settings,
                                 std::unique_ptr<transport::Transport> transport,
                                 std::unique_ptr<network::Network> network = nullptr,
                                 const std::optional<nic::Capabilities>& nic = {});

}  // namespace unisono::comm
