// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/bootstrap.hpp"

#include <exception>
#include <memory>
#include <utility>

#include "base/check.hpp"
#include "base/log.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/kvs/choose_rendezvous_address.hpp"
#include "bootstrap/kvs/key_exchange.hpp"
#include "transport/ip/network_settings.hpp"

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

// Those that a rank needs to reach the rendezvous, as far as they are valid.
base::Settings settings_for_rendezvous(const base::Environment& environment) {
  using base::Setting;
  base::Environment valid;
  base::Settings settings;
  for (const Setting setting : {Setting::rank, Setting::size, Setting::rendezvous, Setting::job_key,
                                Setting::start_timeout, Setting::networks, Setting::log}) {
    const auto found = environment.find(base::setting_row(setting).name);
    if (found == environment.end()) continue;
    base::Environment with = valid;
    with.insert(*found);
    const base::Result<base::Settings> read = base::Settings::from(with);
    if (!read.ok() || !transport::network_settings(*read).ok()) continue;
    valid = std::move(with);
    settings = *read;
  }
  return settings;
}

// An exception becomes the rank's failure, which it tells the others.
void log_rendezvous(JobDescription& job) {
  try {
    base::log(base::LogLevel::info, "bootstrap", "rank {} of {} by launcher {}, rendezvous {}",
              job.rank, job.ranks, launcher_name(job.launcher),
              job.address.name.empty() ? "not needed" : "at " + address_text(job.address));
  } catch (const std::exception& thrown) {
    job.failure = base::error_of(thrown);
  }
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
  log_rendezvous(job);
  base::Result<JobInfo> info = join(job, settings, std::move(listener));
  wipe(job.key);
  return info;
}

void tell_failure(const base::Error& error) {
  const base::Environment environment = base::process_environment();
  const base::Settings settings = settings_for_rendezvous(environment);
  base::Result<JobDescription> job = describe_job(environment, settings, process_facts());
  if (!job.ok() || job->ranks < 2) return;
  base::set_log_rank(job->rank);
  job->failure = error;
  // It is refused, with the error that this rank knows.
  static_cast<void>(join_job(std::move(*job), settings));
}

}  // namespace unisono::bootstrap
