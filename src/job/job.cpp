// SPDX-License-Identifier: BSD-3-Clause
#include "job/job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <time.h>
#include <unistd.h>

#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "job/news_tree.hpp"
#include "topology/spare_core.hpp"
#include "wait/short_slices.hpp"

namespace unisono::job {
namespace {

using base::Code;
using base::Error;

constexpr std::int64_t kStartPauseNs = 200'000;

void pause_ns(std::int64_t duration_ns) {
  const timespec duration{.tv_sec = 0, .tv_nsec = duration_ns};
  nanosleep(&duration, nullptr);
}

// The cores that the ranks of this host have published, in the order of ranks.
std::vector<topology::UsableCores> cores_here(const RankHeader* headers, int ranks,
                                              const network::Hosts& hosts) {
  std::vector<topology::UsableCores> all;
  for (int r = 0; r < ranks; ++r) {
    if (!hosts.is_here(r)) continue;
    topology::UsableCores& cores = all.emplace_back();
    for (std::size_t w = 0; w < cores.mask.size(); ++w) {
      cores.mask[w] = headers[r].cores[w].load(std::memory_order_relaxed);
    }
    cores.quota = headers[r].quota_millicores.load(std::memory_order_relaxed) / 1000.0;
  }
  return all;
}

void tell_place_of_agent(std::optional<int> core, bool tells_of_none) {
  if (core) {
    base::log(base::LogLevel::info, "job",
              "the agent may use core {} as well, to which no rank of this host is bound", *core);
  } else if (tells_of_none) {
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
                                              const std::optional<nic::Capabilities>& nic) {
  std::unique_ptr<Job> job(
      new Job(info, std::move(memory), settings, std::move(transport), std::move(network)));
  if (const base::Status met = job->meet_all(info, nic); !met) return job->fail_start(met.error());
  return job;
}

base::Status Job::meet_all(const bootstrap::JobInfo& info,
                           const std::optional<nic::Capabilities>& nic) {
  // Before any step that waits for others, so that each rank reports its own errors.
  UNISONO_ASSIGN(overrides_, select::overrides_of(settings_));
  UNISONO_TRY(set_up_header());
  UNISONO_TRY(await_all());
  UNISONO_TRY(judge_reach());
  UNISONO_TRY(judge_multicast(info.multicast));
  UNISONO_TRY(agree_on_bulk(info));
  UNISONO_TRY(tell_nic_offers(nic));
  judge_cores();
  return base::success();
}

Job::Job(const bootstrap::JobInfo& info, std::shared_ptr<memory::JobMemory> memory,
         const base::Settings& settings, std::unique_ptr<transport::Transport> transport,
         std::unique_ptr<network::Network> network)
    : rank_(info.rank),
      ranks_(info.ranks),
      name_(info.job),
      memory_(std::move(memory)),
      settings_(settings),
      hosts_(info.members, info.rank),
      key_(info.key),
      transport_(std::move(transport)),
      header_(reinterpret_cast<JobHeader*>(memory_->at(memory::kSegmentAlignment / 2))),
      doorbells_(header_->sleepers, nullptr),
      deadline_ns_(base::now_ns() + settings.time_ns(base::Setting::start_timeout)),
      liveness_(info.members),
      network_(std::move(network)) {
  for (const bootstrap::Member& member : info.members) processes_.push_back(member.pid);
  static_assert(sizeof(memory::MemoryHeader) <= memory::kSegmentAlignment / 2);
  static_assert(sizeof(JobHeader) <= memory::kSegmentAlignment / 2);
}

// The agent's thread progresses the network; the network's thread does the agent's work.
Job::~Job() {
  leave();
  if (agent_ != nullptr) agent_->stop();
}

// A host's first rank makes the tables that grow with the job; the others wait for them. All
// ranks of other hosts have joined, since otherwise no rank would have a JobInfo.
base::Status Job::set_up_header() {
  const auto ranks_bytes = static_cast<std::int64_t>(sizeof(RankHeader)) * ranks_;
  const auto doorbells_bytes = static_cast<std::int64_t>(sizeof(wait::Doorbell)) * ranks_;
  if (rank_ == hosts_.first_here()) {
    UNISONO_ASSIGN(const std::int64_t offset, memory_->allocate(ranks_bytes + doorbells_bytes));
    UNISONO_TRY(memory_->commit(offset, ranks_bytes + doorbells_bytes, "the table of ranks"));
    auto* const headers = reinterpret_cast<RankHeader*>(memory_->at(offset));
    for (int r = 0; r < ranks_; ++r) {
      // It may have left again already, and said so.
      std::uint64_t absent = 0;
      if (!hosts_.is_here(r)) {
        headers[r].state.compare_exchange_strong(absent,
                                                 static_cast<std::uint64_t>(RankState::present));
      }
    }
    header_->ranks_offset.store(offset, std::memory_order_relaxed);
    header_->doorbells_offset.store(offset + ranks_bytes, std::memory_order_release);
  }
  const auto there = [&] { return header_->doorbells_offset.load(std::memory_order_acquire) != 0; };
  UNISONO_TRY(await(there, [this] {
    return fmt::format("rank {} did not set up the job's memory", hosts_.first_here());
  }));
  rank_headers_ = reinterpret_cast<RankHeader*>(
      memory_->at(header_->ranks_offset.load(std::memory_order_relaxed)));
  doorbells_ = wait::Doorbells(header_->sleepers,
                               reinterpret_cast<wait::Doorbell*>(memory_->at(
                                   header_->doorbells_offset.load(std::memory_order_relaxed))));
  doorbells_.register_process(network_ != nullptr);
  if (network_ != nullptr) {
    if (const base::Status made = doorbells_.make_pipe(rank_, ranks_); !made) {
      base::log(base::LogLevel::info, "job", "rank {} sleeps beside its network: {}", rank_,
                made.error().message);
    }
  }
  publish_cores();
  publish_probe();
  rank_headers_[rank_].state.store(static_cast<std::uint64_t>(RankState::present),
                                   std::memory_order_release);
  return base::success();
}

base::Status Job::await_all() {
  const auto all_came = [&] {
    if (dead_rank()) return false;
    for (int r = 0; r < ranks_; ++r) {
      if (state(r) == RankState::absent || state(r) == RankState::dead) return false;
    }
    return true;
  };
  return await(all_came, [&] { return "missing: " + absent_ranks(); });
}

base::Status Job::await(const std::function<bool()>& condition,
                        const std::function<std::string()>& missing) {
  for (;;) {
    const std::int64_t now = base::now_ns();
    watch(now);
    carry_network();
    if (condition()) return base::success();
    if (const auto failure = failed_start()) return *failure;
    if (const auto dead = dead_rank()) return lost(*dead, "its process ended without finalize");
    if (now > deadline_ns_) {
      const std::int64_t limit = settings_.time_ns(base::Setting::start_timeout);
      return Error{Code::timeout, fmt::format("rank {}: the job did not start within {} "
                                              "(UNISONO_START_TIMEOUT): {}",
                                              rank_, base::format_time_ns(limit), missing())};
    }
    pause_ns(kStartPauseNs);
  }
}

std::optional<int> Job::dead_rank() const {
  const std::uint32_t first = header_->first_dead.load(std::memory_order_acquire);
  if (first == 0) return std::nullopt;
  return static_cast<int>(first - 1);
}

base::Error Job::lost(int rank, std::string_view how) const {
  return {Code::rank_lost, fmt::format("rank {}: rank {} is lost ({}): the job cannot start", rank_,
                                       rank, hosts_.with_place(rank, how))};
}

void Job::publish_probe() {
  probe_word_ = (static_cast<std::uint64_t>(base::now_ns()) << 12) + static_cast<unsigned>(rank_);
  RankHeader& own = rank_headers_[rank_];
  own.probe_address.store(reinterpret_cast<std::uint64_t>(&probe_word_), std::memory_order_relaxed);
  own.probe_value.store(probe_word_, std::memory_order_relaxed);
}

// Kernel settings and containers may forbid it between some of the ranks only, and all have to
// agree, so every pair tries.
Reach Job::probe_others() const {
  for (int r = 0; r < ranks_; ++r) {
    if (!hosts_.is_here(r)) continue;
    const RankHeader& other = rank_headers_[r];
    std::uint64_t found = 0;
    const bool readable = transport_->try_pull(processes_[static_cast<std::size_t>(r)],
                                               other.probe_address.load(std::memory_order_relaxed),
                                               reinterpret_cast<std::byte*>(&found), sizeof found);
    if (!readable || found != other.probe_value.load(std::memory_order_relaxed)) {
      return Reach::not_all;
    }
  }
  return Reach::all;
}

base::Status Job::judge_reach() {
  const base::Toggle wish = settings_.toggle(base::Setting::single_copy);
  const int ranks = hosts_.count_here();
  if (ranks == 1) return base::success();
  const Reach own = wish == base::Toggle::off ? Reach::not_all : probe_others();
  rank_headers_[rank_].reach.store(static_cast<std::uint32_t>(own), std::memory_order_release);
  const auto count = [&](Reach reach) {
    int n = 0;
    for (int r = 0; r < ranks_; ++r) {
      n += rank_headers_[r].reach.load(std::memory_order_acquire) ==
           static_cast<std::uint32_t>(reach);
    }
    return n;
  };
  UNISONO_TRY(
      await([&] { return count(Reach::all) + count(Reach::not_all) == ranks; },
            [] { return "not all ranks have tried whether they can read each other's memory"; }));
  if (count(Reach::all) == ranks) {
    transport_->allow_pulls(processes_);
  } else if (wish == base::Toggle::on) {
    return Error{Code::unsupported,
                 fmt::format("rank {}: UNISONO_SINGLE_COPY is on, but {} of {} ranks may not read "
                             "the others' memory (see kernel.yama.ptrace_scope, and the "
                             "container's CAP_SYS_PTRACE). Leave it at auto to go through buffers",
                             rank_, count(Reach::not_all), ranks)};
  }
  return base::success();
}

void Job::publish_cores() {
  const topology::UsableCores cores = topology::usable_cores();
  RankHeader& own = rank_headers_[rank_];
  for (std::size_t w = 0; w < cores.mask.size(); ++w) {
    own.cores[w].store(cores.mask[w], std::memory_order_relaxed);
  }
  own.quota_millicores.store(static_cast<std::uint32_t>(cores.quota * 1000),
                             std::memory_order_relaxed);
}

void Job::judge_cores() {
  std::vector<topology::UsableCores> all = cores_here(rank_headers_, ranks_, hosts_);
  oversubscribed_ = topology::oversubscribed(all);
  const std::size_t ranks = all.size();
  all.reserve(2 * ranks);
  for (std::size_t r = 0; r < ranks; ++r) all.push_back(all[r]);
  has_spare_cores_ = !topology::oversubscribed(all);
  // A look at the network is a system call: nothing is won by not giving the core away in between.
  wait_policy_ = wait::WaitPolicy::for_ranks(oversubscribed_ || network_ != nullptr,
                                             settings_.time_ns(base::Setting::spin));
  const base::Toggle short_slices = settings_.toggle(base::Setting::short_slices);
  if (short_slices == base::Toggle::off) wait_policy_.short_slices = wait::ShortSlices::never;
  if (short_slices == base::Toggle::on) wait_policy_.short_slices = wait::ShortSlices::at_once;
  if (short_slices == base::Toggle::on && !wait::ask_for_short_slices()) {
    base::log(base::LogLevel::warn, "job",
              "UNISONO_SHORT_SLICES=on: this kernel grants no slices of {} us (Linux 6.12 does)",
              wait::kShortSliceNs / 1000);
  }
  if (rank_ == 0) {
    const bool alone = network_ == nullptr;
    base::log(base::LogLevel::info, "job",
              "unisono {}: job {}: {} ranks{}, {}, transport {}{}{}{}{}{}", UNISONO_VERSION, name_,
              ranks_, alone ? "" : fmt::format(" on {} hosts", hosts_.count()),
              oversubscribed_ ? "more than cores (helping)" : "a core each",
              transport_->capabilities().name, alone ? "" : " and ",
              alone ? "" : network_->capabilities().name,
              !alone && network_->multicasts() ? " with multicast" : "",
              alone || network_->bulk_name().empty() ? "" : ", long messages by ",
              alone ? "" : network_->bulk_name());
  }
}

std::string Job::absent_ranks() const {
  std::vector<int> absent;
  for (int r = 0; r < ranks_; ++r) {
    if (state(r) == RankState::absent) absent.push_back(r);
  }
  return fmt::format("rank{} {}", absent.size() == 1 ? "" : "s", fmt::join(absent, ", "));
}

void Job::raise_alarm() {
  header_->alarm.fetch_add(1, std::memory_order_seq_cst);
  for (int r = 0; r < ranks_; ++r) doorbells_.wake(r);
}

base::Status Job::start_agent() {
  const base::Toggle wish = settings_.toggle(base::Setting::agent);
  const bool pays = network_ != nullptr || has_spare_cores_;
  const bool wanted =
      ranks_ > 1 && (wish == base::Toggle::on || (wish == base::Toggle::automatic && pays));
  if (!wanted && network_ == nullptr) return base::success();
  // Threads that start here inherit the core, whichever thread is the agent.
  std::size_t own = 0;
  for (int r = 0; r < rank_; ++r) own += hosts_.is_here(r) ? 1 : 0;
  const std::vector<topology::UsableCores> cores = cores_here(rank_headers_, ranks_, hosts_);
  std::optional<int> core;
  if (topology::fills_its_cores(cores, own)) {
    core = topology::spare_core(cores, own, topology::allowed_cores());
  }
  const topology::WithCore place(core);
  tell_place_of_agent(place.added() ? core : std::nullopt, own == 0);
  if (wanted) {
    agent_ = std::make_unique<Agent>(*this);
    if (hosts_.count_here() > 1) UNISONO_TRY(agent_->start());
  }
  if (network_ == nullptr) return base::success();
  const auto heard = [this](bool came) {
    if (wait_policy_.short_slices != wait::ShortSlices::never) wait::ask_for_short_slices();
    if (came) look_for_news();
    const bool awaits = agent_ != nullptr && agent_->carry();
    if (came) doorbells_.wake(rank_);
    watch(base::now_ns());
    return awaits;
  };
  // Other hosts learn of a death at once, also while all ranks of this host compute.
  return network_->start_agent({.heard = heard,
                                .deaths = liveness_.descriptor(),
                                .someone_died = [this] { look_for_deaths(); }});
}

void Job::carry_network() {
  if (network_ == nullptr || network_->progress() == 0) return;
  look_for_news();
  // The datagrams may be for another thread of this rank.
  if (doorbells_.anyone_asleep()) doorbells_.wake(rank_);
}

void Job::look_for_news() {
  if (rank_headers_ == nullptr) return;  // the rank has left already; checked later
  if (header_->news.load(std::memory_order_relaxed) == 0 || header_->news.exchange(0) == 0) return;
  for (int r = 0; r < ranks_; ++r) {
    if (has_gone(r)) network_->forget(r);
    if (is_lost(r)) pass_on_state(r);
  }
  raise_alarm();
}

bool Job::has_living(int host) const {
  for (int r = 0; r < ranks_; ++r) {
    if (hosts_.of(r) == host && state(r) == RankState::present) return true;
  }
  return false;
}

// The neighbours in the tree of hosts (news_tree.hpp).
std::vector<int> Job::neighbours() const {
  return news_neighbours(hosts_.own(), hosts_.count(), [this](int h) { return has_living(h); });
}

// Reports that the rank is lost, along the tree of hosts, once from each host. If it was the last
// one of its host, the hosts behind may have missed earlier losses.
void Job::pass_on_state(int rank) {
  std::uint64_t not_yet = 0;
  if (!rank_headers_[rank].passed_on.compare_exchange_strong(not_yet, 1)) return;
  // A silent rank that answers again learns that the others count it as lost.
  if (state(rank) == RankState::silent && !hosts_.is_here(rank)) {
    tell_state_to(rank, rank, RankState::silent);
  }
  const int host = hosts_.of(rank);
  const std::vector<int> now = neighbours();
  for (const int next : now) pass_on_state_to(next, rank);
  if (host == hosts_.own() || has_living(host)) return;
  const std::vector<int> before = news_neighbours(
      hosts_.own(), hosts_.count(), [this, host](int h) { return h == host || has_living(h); });
  if (std::ranges::find(before, host) == before.end()) return;
  for (const int next : now) {
    if (std::ranges::find(before, next) != before.end()) continue;
    for (int r = 0; r < ranks_; ++r) {
      if (r != rank && is_lost(r)) pass_on_state_to(next, r);
    }
  }
}

void Job::pass_on_state_to(int host, int rank) {
  for (int r = 0; r < ranks_; ++r) {
    if (hosts_.of(r) != host || state(r) != RankState::present) continue;
    tell_state_to(r, rank, state(rank));
    network_->confirm(r);
  }
}

void Job::send_news(int rank) {
  network_->put(
      {.target = rank, .flag = reinterpret_cast<std::uint64_t*>(&header_->news), .flag_value = 1});
}

void Job::tell_state(int rank, RankState state) {
  for (int r = 0; r < ranks_; ++r) {
    // A silent rank that answers again learns that the others count it as lost.
    const bool is_itself = r == rank && state == RankState::silent;
    // A rank that has reported to another rank of this host that it leaves may wait until this one
    // has received that, or has left.
    const bool may_wait = state == RankState::left && this->state(r) == RankState::left;
    const bool cares = this->state(r) == RankState::present || is_itself || may_wait;
    if (hosts_.is_here(r) || !cares) continue;
    tell_state_to(r, rank, state);
  }
}

// In one packet: a rank that receives the state may leave at once, and acknowledge nothing more.
void Job::tell_state_to(int target, int rank, RankState state) {
  const auto word = static_cast<std::uint64_t>(state);
  network_->put({.target = target,
                 .source = reinterpret_cast<const std::byte*>(&word),
                 .place = reinterpret_cast<std::byte*>(&rank_headers_[rank].state),
                 .bytes = sizeof word,
                 .flag = reinterpret_cast<std::uint64_t*>(&header_->news),
                 .flag_value = 1});
}

void Job::abandon(int rank) {
  if (hosts_.is_here(rank) || state(rank) == RankState::present) return;
  network_->forget(rank);
  if (state(rank) == RankState::silent) tell_state_to(rank, rank, RankState::silent);
}

void Job::pass_on_loss(int rank) {
  if (network_ == nullptr || state(rank) == RankState::present) return;
  abandon(rank);
  for (const int next : neighbours()) pass_on_state_to(next, rank);
}

RankState Job::state(int rank) const {
  return static_cast<RankState>(rank_headers_[rank].state.load(std::memory_order_acquire));
}

std::int64_t Job::watch_interval_ns() const {
  std::int64_t limit_ns = settings_.time_ns(base::Setting::detect_timeout);
  if (network_ != nullptr) limit_ns = std::min(limit_ns, SilenceLimits::of(settings_).lost_ns);
  return limit_ns / 5;
}

void Job::watch(std::int64_t now_ns) {
  const std::unique_lock lock(watch_mutex_, std::try_to_lock);
  if (!lock.owns_lock() || now_ns - watched_ns_ < watch_interval_ns() / 2) return;
  watched_ns_ = now_ns;
  bool news = false;
  for (const int rank : liveness_.poll()) news |= mark_gone(rank, RankState::dead);
  if (network_ != nullptr && rank_headers_ != nullptr) {
    watch_multicast();
    news |= watch_hosts();
  }
  if (news && rank_headers_ != nullptr) raise_alarm();
}

void Job::look_for_deaths() {
  const std::lock_guard lock(watch_mutex_);
  bool news = false;
  for (const int rank : liveness_.poll()) news |= mark_gone(rank, RankState::dead);
  if (news) raise_alarm();
}

// A rank of another host has an agent that answers. If it does not, it is gone or cut off, or the
// network is out for a while.
bool Job::watch_hosts() {
  bool news = false;
  const SilenceLimits limits = SilenceLimits::of(settings_);
  for (int r = 0; r < ranks_; ++r) {
    if (hosts_.is_here(r)) continue;
    if (state(r) != RankState::present) {
      // It was informed after the update about it: packets kept for that rank still take up room.
      network_->forget_once(r);
      continue;
    }
    const std::int64_t silence_ns = network_->silence_ns(r);
    if (silence_ns > limits.lost_ns) {
      news |= mark_gone(r, RankState::silent);
    } else {
      tell_of_silence(r, silence_ns);
    }
  }
  return news;
}

// Each host reports a silence once: by the first of its ranks that notices it.
void Job::tell_of_silence(int rank, std::int64_t silence_ns) {
  std::atomic<std::uint64_t>& suspected_by = rank_headers_[rank].suspected_by;
  const auto own = static_cast<std::uint64_t>(rank_) + 1;
  const SilenceLimits limits = SilenceLimits::of(settings_);
  std::uint64_t nobody = 0;
  if (silence_ns > limits.suspect_ns &&
      suspected_by.compare_exchange_strong(nobody, own, std::memory_order_relaxed)) {
    base::log(base::LogLevel::warn, "job",
              "{} has not answered for {}; waiting until {} before it is declared lost "
              "(UNISONO_DETECT_TIMEOUT_HOSTS)",
              hosts_.name_of(rank),
              base::format_time_ns(silence_ns / base::kMillisecond * base::kMillisecond),
              base::format_time_ns(limits.lost_ns));
  } else if (suspected_by.load(std::memory_order_relaxed) == own && silence_ns == 0) {
    suspected_by.store(0, std::memory_order_relaxed);
    base::log(base::LogLevel::warn, "job", "{} is no longer suspected", hosts_.name_of(rank));
  }
}

bool Job::is_stopped(int rank) {
  const pid_t process = processes_[static_cast<std::size_t>(rank)];
  if (process == getpid() || state(rank) != RankState::present) return false;
  const std::int64_t limit_ns = settings_.time_ns(base::Setting::detect_timeout);
  std::atomic<std::uint64_t>& stops = rank_headers_[rank].stops;
  std::uint64_t before = stops.load(std::memory_order_relaxed);
  const std::int64_t now = base::now_ns();
  if (!StopWatch(before).is_due(now, limit_ns)) return StopWatch(before).is_stopped();
  const StopWatch watch = StopWatch(before).seen(process_is_stopped(process), now, limit_ns);
  // Should another rank have looked meanwhile, its look counts.
  if (!stops.compare_exchange_strong(before, watch.word(), std::memory_order_relaxed)) {
    return StopWatch(before).is_stopped();
  }
  if (watch.is_over(limit_ns) && mark_gone(rank, RankState::silent)) {
    base::log(base::LogLevel::warn, "job",
              "rank {} (process {}) has been stopped for {} (UNISONO_DETECT_TIMEOUT) while others "
              "wait for it: it is taken for lost",
              rank, process, base::format_time_ns(limit_ns));
    raise_alarm();
  }
  return watch.is_stopped();
}

// One of the ranks that notice a death marks it; a rank that left in good order stays "left".
bool Job::mark_gone(int rank, RankState how) {
  bool marked = rank_headers_ == nullptr;  // no rank can have left so early
  for (const RankState before : {RankState::absent, RankState::present}) {
    if (marked) break;
    auto expected = static_cast<std::uint64_t>(before);
    marked = rank_headers_[rank].state.compare_exchange_strong(
        expected, static_cast<std::uint64_t>(how), std::memory_order_acq_rel);
  }
  if (marked && network_ != nullptr && rank_headers_ != nullptr) {
    // The room of packets kept for it is needed to inform the others.
    if (!hosts_.is_here(rank)) network_->forget(rank);
    pass_on_state(rank);
  }
  std::uint32_t none = 0;
  if (marked)
    header_->first_dead.compare_exchange_strong(none, static_cast<std::uint32_t>(rank + 1));
  return marked;
}

void Job::publish_world(std::int64_t offset) {
  header_->world_offset.store(offset, std::memory_order_release);
}

base::Result<std::int64_t> Job::await_world() {
  std::int64_t offset = 0;
  const int first = hosts_.first_here();
  const auto there_or_never = [&] {
    // In this order, because the rank may publish and leave in between.
    const bool left = state(first) == RankState::left;
    offset = header_->world_offset.load(std::memory_order_acquire);
    return offset != 0 || left;
  };
  UNISONO_TRY(await(there_or_never, [first] {
    return fmt::format("rank {} did not set up the world communicator", first);
  }));
  if (offset == 0) return lost(first, "it left before its part was done");
  return offset;
}

void Job::leave() {
  if (left_.exchange(true) || rank_headers_ == nullptr) return;
  // All reports of this rank, such as failures, arrive before the others see that it left.
  const auto gone = [this](int rank) { return has_gone(rank); };
  const std::int64_t patience_ns = SilenceLimits::of(settings_).lost_ns;
  const auto look_at_multicast = [this] {
    const std::lock_guard lock(watch_mutex_);
    watch_multicast();
  };
  if (network_ != nullptr) {
    look_at_multicast();
    if (!network_->settle(patience_ns, gone)) give_up_silent(patience_ns);
    look_at_multicast();
  }
  rank_headers_[rank_].state.store(static_cast<std::uint64_t>(RankState::left),
                                   std::memory_order_release);
  raise_alarm();
  if (network_ == nullptr) return;
  tell_state(rank_, RankState::left);
  // The others lack only that word. A rank that leaves at the same time may have gone without
  // receiving it.
  network_->finish(SilenceLimits::of(settings_).suspect_ns, gone);
}

bool Job::has_gone(int rank) const {
  return !hosts_.is_here(rank) && state(rank) != RankState::present;
}

// Ranks that did not answer in all that time are not waited for once more.
void Job::give_up_silent(std::int64_t patience_ns) {
  for (int r = 0; r < ranks_; ++r) {
    if (!hosts_.is_here(r) && network_->silence_ns(r) > patience_ns / 2) network_->forget(r);
  }
}

bool Job::settle_network() {
  return !left_.load() && network_->settle(SilenceLimits::of(settings_).lost_ns,
                                           [this](int rank) { return has_gone(rank); });
}

void Job::retire(const Retired& segment, std::uint64_t next_sequence) {
  std::uint64_t least = header_->least_sequence.load(std::memory_order_relaxed);
  while (least < next_sequence &&
         !header_->least_sequence.compare_exchange_weak(least, next_sequence)) {
  }
  const std::lock_guard lock(retired_mutex_);
  retired_.push_back(segment);
}

void Job::reclaim() {
  const std::lock_guard lock(retired_mutex_);
  std::erase_if(retired_, [this](const Retired& segment) {
    bool clean = true;
    for (std::size_t m = 0; m < segment.members.size(); ++m) {
      const auto said = static_cast<Farewell>(segment.farewells[m].load(std::memory_order_acquire));
      const RankState now = state(segment.members[m]);
      const bool is_lost = now == RankState::dead || now == RankState::silent;
      if (said == Farewell::none && !is_lost) return false;
      clean &= said == Farewell::clean;
    }
    if (clean) {
      memory_->release(segment.offset, segment.bytes);
    } else {
      memory_->empty(segment.offset, segment.bytes);
    }
    return true;
  });
}

}  // namespace unisono::job
