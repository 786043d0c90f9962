// SPDX-License-Identifier: BSD-3-Clause
#include "bench/measure/team.hpp"

namespace unisono::tools::bench {

base::Result<Team> Team::make(const Place& job, int ranks) {
  Team team(job);
  if (ranks == job.ranks) {
    team.place_ = job;
    return team;
  }
  team.place_.rank = job.rank;
  team.place_.ranks = ranks;
  const int color = job.rank < ranks ? 0 : -1;
  for (unisono_comm_t* comm : {&team.place_.measured, &team.place_.control}) {
    UNISONO_TRY(to_status(unisono_comm_split(job.measured, color, job.rank, comm)));
  }
  return team;
}

base::Status Team::end() {
  if (has_me() && place_.ranks < job_->ranks) {
    UNISONO_TRY(to_status(unisono_comm_free(place_.control)));
    UNISONO_TRY(to_status(unisono_comm_free(place_.measured)));
  }
  return to_status(unisono_barrier(job_->control));
}

}  // namespace unisono::tools::bench
