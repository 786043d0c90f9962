// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/bootstrap.hpp"

#include <utility>

#include "base/check.hpp"
#include "base/log.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/kvs/agree_on_place.hpp"
#include "bootstrap/kvs/key_exchange.hpp"

namespace unisono::bootstrap {

base::Result<JobDescription> describe_own_job(const base::Settings& settings) {
  UNISONO_ASSIGN(JobDescription job,
                 describe_job(base::process_environment(), settings, process_facts()));
  base::set_check_rank(job.rank);
  base::set_log_rank(job.rank);
  return job;
}

base::Result<JobInfo> join_job(JobDescription job, const base::Settings& settings) {
  base::Descriptor listener;
  if (job.board.kind != BoardKind::none) {
    UNISONO_ASSIGN(listener, agree_on_place(job, settings));
  }
  base::log(base::LogLevel::info, "bootstrap", "rank {} of {} by launcher {}, meeting at {}",
            job.rank, job.ranks, launcher_name(job.launcher),
            job.address.name.empty() ? "nowhere" : address_text(job.address));
  base::Result<JobInfo> info = join(job, settings, std::move(listener));
  wipe(job.key);
  return info;
}

}  // namespace unisono::bootstrap
