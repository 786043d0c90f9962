// SPDX-License-Identifier: BSD-3-Clause
#include "comm/start.hpp"

#include <utility>

namespace unisono::comm {

base::Result<Started> start_rank(const bootstrap::JobInfo& info,
                                 std::shared_ptr<memory::JobMemory> memory,
                                 const base::Settings& settings,
                                 std::unique_ptr<transport::Transport> transport,
                                 std::unique_ptr<network::Network> network,
                                 const std::optional<nic::Capabilities>& nic) {
  Started started;
  UNISONO_ASSIGN(started.job, job::Job::enter(info, std::move(memory), settings,
                                              std::move(transport), std::move(network), nic));
  job::Job& job = *started.job;
  const auto go_on = [&]() -> base::Status {
    if (const std::string& file = settings.text(base::Setting::profile); !file.empty()) {
      job.profile.set(profile::join_profile(file, {.rank = info.rank,
                                                   .ranks = info.ranks,
                                                   .job = info.job,
                                                   .machine = job.machine().name}));
    }
    UNISONO_TRY(job.start_agent());
    UNISONO_ASSIGN(started.world, Communicator::create_world(job));
    return job.start_up().confirm();
  };
  UNISONO_TRY(job.start_up().tell_errors_of(go_on));
  if (info.connections != nullptr) info.connections->end_start();
  return started;
}

}  // namespace unisono::comm
