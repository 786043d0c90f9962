// SPDX-License-Identifier: BSD-3-Clause
#include "job/job.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "job/start/exchanges.hpp"
#include "topology/spare_core.hpp"
#include "wait/short_slices.hpp"

namespace unisono::job {
namespace {

void log_place_of_agent(std::optional<int> core, bool logs_none) {
  if (core) {
    base::log(base::LogLevel::info, "job",
              "the agent may use core {} as well, to which no rank of this host is bound", *core);
  } else if (logs_none) {
    base::log(base::LogLevel::info, "job",
              "agents share their ranks' cores: the ranks of this host are not bound, or no core "
              "is spare");
  }
}

}  // namespace

base::Result<std::unique_ptr<Job>> Job::enter(const bootstrap::JobInfo& info,
                                              std::shared_ptr<memory::JobMemory> memory,
                                              const base::Settings& settings,
                                              std::unique_ptr<transport::Transport> transport,
                                              std::unique_ptr<network::Network> network,
                                              const std::optional<nic::Capabilities>& nic,
                                              const base::Status& so_far) {
  std::unique_ptr<Job> job(
      new Job(info, std::move(memory), settings, std::move(transport), std::move(network)));
  UNISONO_TRY(job->start_up_.tell_errors_of(
      [&] { return so_far.ok() ? job->meet_all(info, nic) : so_far; }));
  return job;
}

Job::Job(const bootstrap::JobInfo& info, std::shared_ptr<memory::JobMemory> memory,
         const base::Settings& settings, std::unique_ptr<transport::Transport> transport,
         std::unique_ptr<network::Network> network)
    : differing_settings(info.differing_settings),
      settings_(settings),
      key_(info.key),
      memory_(std::move(memory)),
      transport_(std::move(transport)),
      header_(*reinterpret_cast<JobHeader*>(memory_->at(memory::kSegmentAlignment / 2))),
      doorbells_(header_.sleepers, nullptr),
      ranks_(info),
      events_(header_, doorbells_, info.ranks),
      losses_(ranks_, header_, events_, network.get()),
      multicast_(ranks_, header_, network.get()),
      watch_(info.members, ranks_, losses_, multicast_, events_, network.get(), settings),
      start_up_(ranks_, header_, losses_, network.get(), info.connections.get(), settings,
                [this] {
                  watch_.look(base::now_ns());
                  carry_network();
                }),
      retired_(header_, ranks_, *memory_),
      network_(std::move(network)) {
  static_assert(sizeof(memory::MemoryHeader) <= memory::kSegmentAlignment / 2);
  static_assert(sizeof(JobHeader) <= memory::kSegmentAlignment / 2);
}

// The agent's thread progresses the network; the network's thread does the agent's work.
Job::~Job() {
  leave();
  if (agent_ != nullptr) agent_->stop();
}

base::Status Job::meet_all(const bootstrap::JobInfo& info,
                           const std::optional<nic::Capabilities>& nic) {
  UNISONO_ASSIGN(overrides_, select::overrides_of(settings_));
  // Other hosts get the text of an error by the tables, so they come first. Rank 0 makes its own,
  // and reads its file before it waits for others.
  UNISONO_TRY(set_up_tables());
  make_doorbells();
  UNISONO_ASSIGN(const std::string own_machine, machine_to_share(start_up_));
  cores_.publish(ranks_);
  ReachProbe reach(ranks_);
  ranks_.enter();
  UNISONO_TRY(start_up_.await_ranks());
  UNISONO_TRY(reach.decide(start_up_, *transport_));
  UNISONO_TRY(multicast_.decide(start_up_, info.multicast));
  UNISONO_ASSIGN(machine_, agree_on_machine(start_up_, info, *memory_, own_machine));
  UNISONO_ASSIGN(reproducible, agree_on_sums(start_up_, info));
  UNISONO_ASSIGN(heterogeneous, agree_on_heterogeneity(start_up_, info));
  UNISONO_TRY(agree_on_bulk(start_up_, info, memory_, *machine_));
  UNISONO_ASSIGN(nic_capabilities_, exchange_nic_capabilities(start_up_, nic));
  cores_.settle(ranks_, network_ != nullptr, info.shared_cores, settings_, *machine_);
  // Then ranks sleep often. All ranks of the host decide alike, and none has rung or slept yet.
  if (cores_.are_oversubscribed()) doorbells_.register_process(true);
  if (ranks_.own() == 0) log_start(info.job);
  return base::success();
}

// A host's first rank makes the tables that grow with the job; the others wait for them. All
// ranks of other hosts have joined, since otherwise no rank would have a JobInfo.
base::Status Job::set_up_tables() {
  const auto ranks_bytes = static_cast<std::int64_t>(sizeof(RankHeader)) * ranks_.count();
  const auto doorbells_bytes = static_cast<std::int64_t>(sizeof(wait::Doorbell)) * ranks_.count();
  if (ranks_.is_first_here()) {
    UNISONO_ASSIGN(const std::int64_t offset, memory_->allocate(ranks_bytes + doorbells_bytes));
    UNISONO_TRY(memory_->commit(offset, ranks_bytes + doorbells_bytes, "the table of ranks"));
    auto* const entries = reinterpret_cast<RankHeader*>(memory_->at(offset));
    for (const int r : hosts().elsewhere()) {
      // It may have left again already, and said so.
      auto absent = static_cast<std::uint64_t>(RankState::absent);
      entries[r].state.compare_exchange_strong(absent,
                                               static_cast<std::uint64_t>(RankState::present));
    }
    header_.ranks_offset.store(offset, std::memory_order_relaxed);
    header_.doorbells_offset.store(offset + ranks_bytes, std::memory_order_release);
  }
  const auto there = [&] { return header_.doorbells_offset.load(std::memory_order_acquire) != 0; };
  UNISONO_TRY(start_up_.await(there, [this] {
    return fmt::format("rank {} did not set up the job's memory", hosts().first_here());
  }));
  ranks_.attach(reinterpret_cast<RankHeader*>(
      memory_->at(header_.ranks_offset.load(std::memory_order_relaxed))));
  return base::success();
}

void Job::make_doorbells() {
  doorbells_ = wait::Doorbells(
      header_.sleepers, reinterpret_cast<wait::Doorbell*>(
                            memory_->at(header_.doorbells_offset.load(std::memory_order_relaxed))));
  doorbells_.register_process(network_ != nullptr);
  if (network_ == nullptr) return;
  if (const base::Status made = doorbells_.make_pipe(ranks_.own(), ranks_.count()); !made) {
    base::log(base::LogLevel::info, "job", "rank {} sleeps beside its network: {}", ranks_.own(),
              made.error().message);
  }
}

void Job::log_start(const std::string& name) const {
  if (!differing_settings.empty()) {
    base::log(base::LogLevel::warn, "job",
              "settings differ that all ranks should set alike; collectives may fail: {}",
              differing_settings);
  }
  const bool alone = network_ == nullptr;
  base::log(base::LogLevel::info, "job",
            "unisono {}: job {}: {} ranks{}, {}, transport {}{}{}{}{}{}", UNISONO_VERSION, name,
            ranks_.count(), alone ? "" : fmt::format(" on {} hosts", hosts().count()),
            cores_.are_oversubscribed() ? "more than cores (helping)" : "a core each",
            transport_->capabilities().name, alone ? "" : " and ",
            alone ? "" : network_->capabilities().name,
            !alone && network_->multicasts() ? " with multicast" : "",
            alone || network_->bulk_name().empty() ? "" : ", long messages by ",
            alone ? "" : network_->bulk_name());
}

base::Status Job::start_agent() {
  const base::Toggle wish = settings_.toggle(base::Setting::agent);
  const bool pays = network_ != nullptr || cores_.suffice_for_agents();
  const bool wanted =
      ranks_.count() > 1 && (wish == base::Toggle::on || (wish == base::Toggle::automatic && pays));
  // Even if no thread does its work: then lent operations go on in calls of the rank that wait.
  if (ranks_.count() > 1) {
    agent_ = std::make_unique<Agent>(ranks_.own(), doorbells_, watch_,
                                     wanted ? network_.get() : nullptr);
  }
  if (!wanted && network_ == nullptr) return base::success();
  // Threads that start here inherit the core, whichever thread is the agent.
  const std::optional<int> core = cores_.place_of_agent();
  const topology::WithCore place(core);
  log_place_of_agent(place.added() ? core : std::nullopt, ranks_.is_first_here());
  if (wanted && hosts().count_here() > 1) UNISONO_TRY(agent_->start());
  return network_ == nullptr ? base::success() : start_network_thread();
}

base::Status Job::start_network_thread() {
  const auto heard = [this](bool came) {
    if (cores_.wait_policy().short_slices != wait::ShortSlices::never) wait::ask_for_short_slices();
    if (came) losses_.take_updates();
    const bool awaits = agent_ != nullptr && agent_->has_thread() && agent_->carry();
    if (came) doorbells_.wake(ranks_.own());
    watch_.look(base::now_ns());
    return awaits;
  };
  // Among other programs a rank may lose its core while packets wait.
  const auto may_gather = [this](std::int64_t now_ns) {
    return !cores_.contention().is_there(now_ns);
  };
  // Other hosts learn of a death at once, also while all ranks of this host compute.
  return network_->agent().start({.heard = heard,
                                  .deaths = watch_.deaths(),
                                  .someone_died = [this] { watch_.look_for_deaths(); },
                                  .may_gather = may_gather});
}

void Job::carry_network() {
  if (network_ == nullptr || network_->progress() == 0) return;
  losses_.take_updates();
  // The datagrams may be for another thread of this rank.
  if (doorbells_.anyone_asleep()) doorbells_.wake(ranks_.own());
}

void Job::leave() {
  if (left_.exchange(true) || !ranks_.has_tables()) return;
  // All reports of this rank, such as failures, arrive before the others see that it left.
  const auto gone = [this](int rank) { return ranks_.departure(rank); };
  const SilenceLimits limits = SilenceLimits::of(settings_);
  if (network_ != nullptr) {
    watch_.look_at_multicast();
    // Ranks that did not answer in all that time are not waited for once more.
    // After a start that has failed, all leave, and some without a word.
    const std::int64_t patience_ns = start_up_.has_failed() ? limits.suspect_ns : limits.lost_ns;
    if (!network_->settle(patience_ns, gone)) watch_.give_up_silent(patience_ns);
    watch_.look_at_multicast();
  }
  ranks_.leave();
  events_.raise();
  if (network_ == nullptr) return;
  losses_.tell_leave();
  // The others lack only that word. A rank that leaves at the same time may have gone without
  // receiving it.
  network_->finish(limits.suspect_ns, gone);
}

bool Job::settle_network() {
  return !left_.load() && network_->settle(SilenceLimits::of(settings_).lost_ns,
                                           [this](int rank) { return ranks_.departure(rank); });
}

}  // namespace unisono::job
