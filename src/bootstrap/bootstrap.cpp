// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/bootstrap.hpp"

#include <memory>
#include <utility>

#include "base/check.hpp"
#include "base/log.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/kvs/choose_rendezvous_address.hpp"
#include "bootstrap/kvs/key_exchange.hpp"

namespace unisono::bootstrap {
namespace {

// Over the launcher's key-value store. Fills in the address and, if the user has set none, the key;
// gives rank 0's socket that listens there.
base::Result<base::Descriptor> choose_address(JobDescription& job, const base::Settings& settings) {
  StoreOptions options = job.store;
  options.rank = job.rank;
  options.ranks = job.ranks;
  options.timeout_ns = settings.time_ns(base::Setting::start_timeout);
  UNISONO_ASSIGN(const std::unique_ptr<KeyValueStore> store, open_store(options));
  UNISONO_ASSIGN(ChosenRendezvous chosen,
                 choose_rendezvous_address(*store, {job.rank, job.ranks, job.key}, settings));
  job.address = std::move(chosen.address);
  job.key = std::move(chosen.key);
  return std::move(chosen.listener);
}

}  // namespace

base::Result<JobDescription> describe_own_job(const base::Settings& settings) {
  UNISONO_ASSIGN(JobDescription job,
                 describe_job(base::process_environment(), settings, process_facts()));
  base::set_check_rank(job.rank);
  base::set_log_rank(job.rank);
  return job;
}

base::Result<JobInfo> join_job(JobDescription job, const base::Settings& settings) {
  base::Descriptor listener;
  if (job.store.kind != StoreKind::none) {
    UNISONO_ASSIGN(listener, choose_address(job, settings));
  }
  base::log(base::LogLevel::info, "bootstrap", "rank {} of {} by launcher {}, rendezvous {}",
            job.rank, job.ranks, launcher_name(job.launcher),
            job.address.name.empty() ? "not needed" : "at " + address_text(job.address));
  base::Result<JobInfo> info = join(job, settings, std::move(listener));
  wipe(job.key);
  return info;
}

}  // namespace unisono::bootstrap
