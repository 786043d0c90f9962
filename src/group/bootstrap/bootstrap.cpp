// SPDX-License-Identifier: BSD-3-Clause
#include "group/bootstrap/bootstrap.hpp"

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/settings.hpp"
#include "group/bootstrap/agree_on_place.hpp"
#include "group/bootstrap/join.hpp"
#include "group/bootstrap/key_exchange.hpp"
#include "group/bootstrap/launcher.hpp"

namespace unisono::group {

base::Result<Seat> join_from_environment(std::uint64_t memory_layout) {
  const base::Result<base::Settings>& settings = base::process_settings();
  if (!settings.ok()) return settings.error();
  UNISONO_ASSIGN(JobDescription job,
                 describe_job(base::process_environment(), *settings, process_facts()));
  job.memory_layout = memory_layout;
  base::set_check_rank(job.rank);
  base::set_log_rank(job.rank);
  base::Descriptor listener;
  if (job.board.kind != BoardKind::none) {
    UNISONO_ASSIGN(listener, agree_on_place(job, *settings));
  }
  base::log(base::LogLevel::info, "bootstrap", "rank {} of {} by launcher {}, meeting at {}",
            job.rank, job.ranks, launcher_name(job.launcher),
            job.address.name.empty() ? "nowhere" : address_text(job.address));
  base::Result<Seat> seat = join(job, *settings, std::move(listener));
  wipe(job.key);
  return seat;
}

}  // namespace unisono::group
