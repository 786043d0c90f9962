// SPDX-License-Identifier: BSD-3-Clause
#include "group/communicator.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "wire/key.hpp"

namespace unisono::group {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using engine::LaneGeometry;

constexpr std::uint32_t kSmallPrepared = 1;
constexpr std::uint32_t kBulkPrepared = 2;

// Windows for small messages: enough lines for every rank to send to one, a ring of both
// directions, and some room for payloads of more than a line.
constexpr std::int64_t kSpareLines = 16;
constexpr std::int64_t kSmallWindow = 8 * 1024;
constexpr std::int64_t kBulkWindow = 128 * 1024;
constexpr std::int64_t kLeastBulkWindow = 16 * 1024;
constexpr int kSmallChannels = 64;
constexpr int kBulkChannels = 8;

std::int64_t round_up(std::int64_t bytes, std::int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// The largest power of two that leaves the lane within its share of memory.
int fitting_channels(int most, std::int64_t window_bytes, int ranks, std::int64_t share) {
  int channels = most;
  while (channels > 2 && channels * window_bytes * ranks > share) channels /= 2;
  return channels;
}

}  // namespace

SegmentLayout Communicator::plan_layout(int ranks, const base::Settings& settings) {
  const std::int64_t share = settings.bytes(base::Setting::buffers) / 2;
  SegmentLayout g{};
  const std::int64_t lines = 2 * ranks + kSpareLines;
  const std::int64_t line_bytes = lines * engine::kLineBytes;
  const auto wanted = static_cast<int>(
      std::bit_floor(static_cast<std::uint64_t>(settings.integer(base::Setting::channels))));
  const std::int64_t small = std::max(kSmallWindow, round_up(line_bytes + kSmallWindow / 2, 4096));
  g.small = {.ranks = ranks,
             .channels = wanted >= 2 ? std::min(wanted, engine::kMostChannels)
                                     : fitting_channels(kSmallChannels, small, ranks, share),
             .lines = lines,
             .data_bytes = small - line_bytes};
  std::int64_t bulk = kBulkWindow;
  const int bulk_channels = fitting_channels(kBulkChannels, bulk + line_bytes, ranks, share);
  while (bulk > kLeastBulkWindow && bulk * bulk_channels * ranks > share) bulk /= 2;
  g.bulk = {.ranks = ranks, .channels = bulk_channels, .lines = lines, .data_bytes = bulk};

  std::int64_t end = round_up(static_cast<std::int64_t>(sizeof(CommunicatorHeader)), 4096);
  const auto place = [&end](std::int64_t bytes) {
    const std::int64_t offset = end;
    end = round_up(end + bytes, 4096);
    return offset;
  };
  g.notices = place(ranks * static_cast<std::int64_t>(sizeof(FailureNotice)));
  g.farewells = place(ranks * static_cast<std::int64_t>(sizeof(std::uint64_t)));
  g.ends = place(Ends::memory_bytes(ranks));
  g.members = place(ranks * static_cast<std::int64_t>(sizeof(MemberRecord)));
  g.calls = place(RemoteCalls::memory_bytes(ranks));
  g.small_control = place(engine::lane_control_bytes(g.small));
  g.bulk_control = place(engine::lane_control_bytes(g.bulk));
  g.small_windows = place(g.small.windows_bytes());
  g.bulk_windows = place(g.bulk.windows_bytes());
  g.agreement = place(Agreement::table_bytes(ranks, sizeof(Grant)));
  g.answers = place(std::int64_t{ranks} * ranks * static_cast<std::int64_t>(sizeof(QueryAnswer)));
  g.failure_answers = place(ranks * static_cast<std::int64_t>(sizeof(FailureAnswer)));
  g.host_reduction = place(engine::HostReduction::memory_bytes(ranks));
  g.bytes = end;
  g.first_sequence = static_cast<std::uint64_t>(settings.integer(base::Setting::first_sequence));
  return g;
}

std::uint64_t memory_layout(const base::Settings& settings) {
  const SegmentLayout layout = Communicator::plan_layout(64, settings);
  return wire::hash(
      wire::Key{},
      fmt::format("{} {} {} {} {} {}", layout.bytes, layout.first_sequence, layout.small.channels,
                  layout.bulk.channels, layout.bulk.data_bytes, static_cast<int>(settings.bulk())));
}

Result<std::int64_t> Communicator::reserve(Job& job, int ranks) {
  SegmentLayout layout = plan_layout(ranks, job.settings());
  layout.first_sequence = std::max(layout.first_sequence, job.least_sequence());
  job.reclaim();
  UNISONO_ASSIGN(const std::int64_t offset, job.memory().allocate(layout.bytes));
  if (const Status ready = adopt(job, offset, layout); !ready) {
    job.memory().release(offset, layout.bytes);
    return ready.error();
  }
  reinterpret_cast<CommunicatorHeader*>(job.memory().at(offset))->layout = layout;
  return offset;
}

Status Communicator::adopt(Job& job, std::int64_t offset, const SegmentLayout& layout) {
  return job.memory().commit(offset, layout.small_windows, "a communicator's control data");
}

Result<std::unique_ptr<Communicator>> Communicator::create_world(Job& job) {
  // Every host's first rank does the same, so all find the same offset.
  if (job.rank() == job.hosts().first_here()) {
    UNISONO_ASSIGN(const std::int64_t offset, reserve(job, job.ranks()));
    if (job.network() != nullptr) job.memory().confine(job.hosts().own(), job.hosts().count());
    job.publish_world(offset);
  }
  UNISONO_ASSIGN(const std::int64_t offset, job.await_world());
  std::vector<int> everyone(static_cast<std::size_t>(job.ranks()));
  for (int r = 0; r < job.ranks(); ++r) everyone[static_cast<std::size_t>(r)] = r;
  const auto& header = *reinterpret_cast<CommunicatorHeader*>(job.memory().at(offset));
  std::unique_ptr<Communicator> world(
      new Communicator(job, std::move(everyone), job.rank(), offset, header.layout, true));
  UNISONO_TRY(world->agree_on_nic());
  return world;
}

Communicator::Communicator(Job& job, std::vector<int> job_ranks, int rank, std::int64_t offset,
                           const SegmentLayout& layout, bool is_world)
    : job_(job),
      job_ranks_(std::move(job_ranks)),
      remote_(find_remote()),
      is_world_(is_world),
      rank_(rank),
      offset_(offset),
      header_(reinterpret_cast<CommunicatorHeader*>(job.memory().at(offset))),
      layout_(layout),
      small_(layout_.small, rank, job.memory().at(offset + layout_.small_control),
             job.memory().at(offset + layout_.small_windows), layout_.first_sequence),
      bulk_(layout_.bulk, rank, job.memory().at(offset + layout_.bulk_control),
            job.memory().at(offset + layout_.bulk_windows), layout_.first_sequence),
      machine_{.transport = &job.transport(),
               .direct = job.transport().capabilities().direct,
               .network = remote_.empty() ? nullptr : job.network(),
               .doorbells = &job.doorbells(),
               .job_ranks = job_ranks_.data(),
               .ranks = static_cast<int>(job_ranks_.size()),
               .job_memory = job.memory().at(0),
               .credit_sleepers = &header_->credit_sleepers,
               .counters = &statistics_.engine},
      plans_(plan_context()),
      // A member may have come, and failed, before: the first wait looks.
      alarm_seen_(job.alarm() - 1),
      news_(job, job_ranks_, rank,
            {.record = &header_->failure,
             .notices = notices(),
             .answers = reinterpret_cast<FailureAnswer*>(
                 job.memory().at(offset + layout_.failure_answers))}),
      ends_(job.memory().at(offset + layout.ends), layout.first_sequence + 1),
      remote_calls_(job.memory().at(0), offset + layout.calls, rank, layout.first_sequence) {
  if (remote_.empty()) return;
  small_.set_remote(remote_by_host());
  bulk_.set_remote(remote_by_host());
}

std::vector<int> Communicator::find_remote() const {
  std::vector<int> remote;
  for (int r = 0; r < size(); ++r) {
    if (is_remote(r)) remote.push_back(r);
  }
  return remote;
}

std::vector<std::vector<int>> Communicator::remote_by_host() const {
  std::vector<std::vector<int>> hosts(static_cast<std::size_t>(job_.hosts().count()));
  for (const int r : remote_)
    hosts[static_cast<std::size_t>(job_.hosts().of(job_ranks_[static_cast<std::size_t>(r)]))]
        .push_back(r);
  std::erase_if(hosts, [](const std::vector<int>& ranks) { return ranks.empty(); });
  return hosts;
}

std::vector<int> Communicator::hosts_of_members() const {
  std::vector<int> hosts;
  for (const int job_rank : job_ranks_) hosts.push_back(job_.hosts().of(job_rank));
  return hosts;
}

// Multicasts come to the first rank of each host, so these have to be members, all of them: what
// others are sent would come to hosts that have nothing of this communicator.
std::vector<bool> Communicator::find_group() const {
  const Network* const network = machine_.network == nullptr ? nullptr : job_.network();
  if (network == nullptr || !network->multicasts()) return {};
  const std::vector<int>& firsts = job_.hosts().firsts();
  std::vector<bool> group;
  for (const int job_rank : job_ranks_) {
    group.push_back(std::ranges::binary_search(firsts, job_rank));
  }
  if (std::cmp_less(std::ranges::count(group, true), firsts.size())) return {};
  return group;
}

// Between hosts, nobody can do another's steps, read another's memory or see what is staged; and
// all members have to plan alike, however many cores their hosts have.
PlanContext Communicator::plan_context() const {
  const transport::Capabilities& can = job_.transport().capabilities();
  const bool one_memory = remote_.empty();
  std::vector<int> hosts;
  if (!one_memory) hosts = hosts_of_members();
  std::vector<bool> group = find_group();
  const bool all_in_group = !group.empty() && std::ranges::count(group, false) == 0;
  return {.rank = rank_,
          .ranks = size(),
          .oversubscribed = one_memory && job_.oversubscribed(),
          .staged_multicast = can.multicast,
          .multicast = one_memory ? can.multicast : all_in_group,
          .shared_windows = one_memory && can.shared_windows,
          .engine = job_.settings().engine(),
          .pull = one_memory && can.pull,
          .host_map = topology::HostMap::of_labels(hosts),
          .hosts = std::move(hosts),
          .group = std::move(group),
          .single_copy_from = job_.settings().bytes(base::Setting::single_copy_from),
          .check = job_.settings().toggle(base::Setting::check),
          .small = layout_.small,
          .bulk = layout_.bulk,
          .overrides = job_.overrides()};
}

// The last living member to end a communicator gives its memory back; of several hosts, the last of
// each, and the leader makes the place free for others when all have said farewell.
Communicator::~Communicator() {
  take_back();
  publish_progress();
  if (!is_world_) tell_end();
  for (const auto& [offset, bytes] : stranded_) job_.memory().release(offset, bytes);
  const bool last_here = count_end();
  if (!remote_.empty()) {
    say_farewell(last_here);
  } else if (last_here) {
    job_.memory().release(offset_, layout_.bytes);
  }
}

// Each member of this host counts once: when it ends the communicator, or, if it is dead or never
// had it, when one of the others does. True for the one who makes the count complete.
bool Communicator::count_end() {
  std::uint32_t ends = 0;
  for (int r = 0; r < size(); ++r) {
    if (is_remote(r)) continue;
    const bool cannot = state_of(r) == RankState::dead || std::ranges::count(absent_, r) != 0;
    if (r != rank_ && !cannot) continue;
    std::uint32_t none = 0;
    ends += members()[r].ended.compare_exchange_strong(none, 1) ? 1U : 0U;
  }
  return header_->freed.fetch_add(ends, std::memory_order_acq_rel) + ends ==
         static_cast<std::uint32_t>(size()) - remote_.size();
}

// A rank that leaves with the world says that it leaves.
void Communicator::tell_end() {
  std::vector<int> targets;
  std::vector<bool> is_told(static_cast<std::size_t>(job_.hosts().count()));
  for (const int member : remote_) {
    const int target = job_ranks_[static_cast<std::size_t>(member)];
    const auto host = static_cast<std::size_t>(job_.hosts().of(target));
    if (is_told[host] || job_.state(target) != RankState::present) continue;
    is_told[host] = true;
    targets.push_back(target);
  }
  if (job_.state(job_.rank()) != RankState::present) targets.clear();
  ends_.tell(rank_,
             {.index = next_index_,
              .has_failed = failed() || known_failure().has_value(),
              .has_shrunk = shrunk_ || agreement_ != nullptr},
             targets, job_.network());
}

bool Communicator::has_ended_before_shrink(int rank) const {
  const auto end = ends_.of(rank);
  return end && !end->has_shrunk;
}

void Communicator::say_farewell(bool last_here) {
  constexpr int kLeader = 0;
  const bool with_leader = !is_remote(kLeader);
  // Before the first operation, nothing can be on its way that would come to a newer one.
  const bool has_failed = next_index_ != 0 && (failed() || known_failure().has_value());
  // Before the farewell, after which a newer communicator may lie here.
  const bool leader_is_gone = state_of(kLeader) == RankState::dead;
  if (last_here && (!with_leader || leader_is_gone)) job_.memory().empty(offset_, layout_.bytes);
  if (is_world_ || !job_.settle_network()) return;
  auto* const farewells =
      reinterpret_cast<std::atomic<std::uint64_t>*>(job_.memory().at(offset_ + layout_.farewells));
  const auto said = static_cast<std::uint64_t>(has_failed ? Farewell::failed : Farewell::clean);
  if (with_leader) {
    farewells[rank_].store(said, std::memory_order_release);
  } else {
    machine_.network->put({.target = job_ranks_[kLeader],
                           .flag = reinterpret_cast<std::uint64_t*>(&farewells[rank_]),
                           .flag_value = said});
  }
  if (rank_ == kLeader) {
    job_.retire({offset_, layout_.bytes, farewells, job_ranks_},
                std::max(small_.next_sequence(), bulk_.next_sequence()) + 1);  // as the mark
  }
}

void Communicator::publish_progress() {
  take_back();
  leave_nic();
  for (engine::Lane* lane : {&small_, &bulk_}) {
    while (const auto news = lane->take_news(true)) {
      for (const int member : news->ranks) {
        machine_.network->put({.target = job_ranks_[static_cast<std::size_t>(member)],
                               .flag = news->word,
                               .flag_value = news->done,
                               .forward = true});
      }
    }
  }
}

Result<CachedPlan*> Communicator::plan(const Call& call) {
  take_back();
  UNISONO_ASSIGN(CachedPlan* const plan, plans_.find(call, active_.empty()));
  const std::uint32_t need = plan->plan.bulk ? kBulkPrepared : kSmallPrepared;
  if ((prepared_ & need) == 0) [[unlikely]]
    UNISONO_TRY(prepare(plan->plan.bulk));
  return plan;
}

// A sender writes into others' windows, perhaps before they have come, so each rank sees to it that
// all windows of its host are there, and those of other hosts' ranks in which their multicasts lie.
Status Communicator::prepare(bool bulk) {
  const std::int64_t windows = bulk ? layout_.bulk_windows : layout_.small_windows;
  const std::int64_t stride = (bulk ? layout_.bulk : layout_.small).rank_stride();
  const std::vector<bool> group = find_group();
  const auto is_there = [&](int r) {
    return !is_remote(r) || (!group.empty() && group[static_cast<std::size_t>(r)]);
  };
  for (int r = 0; r < size(); ++r) {
    if (!is_there(r)) continue;
    int end = r + 1;
    while (end < size() && is_there(end)) ++end;
    const std::int64_t bytes = (end - r) * stride;
    UNISONO_TRY(
        job_.memory().commit(offset_ + windows + r * stride, bytes, "a communicator's buffers"));
    statistics_.buffer_bytes += bytes;
    r = end;
  }
  prepared_ |= bulk ? kBulkPrepared : kSmallPrepared;
  return base::success();
}

Status Communicator::run(const Call& call, const void* input, void* output) {
  if (begins_no_more()) [[unlikely]]
    return failure();
  auto found = plan(call);
  if (!found) [[unlikely]]
    return refuse(found.error().code, found.error().message);
  return run(**found, input, output);
}

Status Communicator::run(CachedPlan& plan, const void* input, void* output) {
  if (begins_no_more()) [[unlikely]]
    return failure();
  if (plan.nic) [[unlikely]]
    return run_in_nic(plan, input, output);
  blocking_.state = Pending::State::running;
  blocking_.started_ns = 0;
  blocking_.looks = 0;
  if (plan.plan.staging_bytes != 0) [[unlikely]]
    UNISONO_TRY(stage(plan, blocking_));
  begin(plan, input, output, blocking_);
  if (active_.empty() && machine_.direct) [[likely]] {
    if (blocking_.operation.step(machine_) == engine::Outcome::finished) {
      ++statistics_.operations;
      statistics_.helped_steps += blocking_.operation.helped_steps();
      if (blocking_.staging != 0) [[unlikely]]
        give_back_staging(blocking_);
      return base::success();
    }
  }
  return finish(blocking_);
}

Status Communicator::stage(const CachedPlan& plan, Pending& pending) {
  const std::int64_t bytes = plan.plan.staging_bytes;
  auto offset = job_.memory().allocate(bytes);
  Status ready = offset ? job_.memory().commit(*offset, bytes, "blocks that others will fetch")
                        : Status(offset.error());
  if (ready) {
    pending.staging = *offset;
    return ready;
  }
  if (offset) job_.memory().release(*offset, bytes);
  return refuse(ready.error().code, ready.error().message);
}

void Communicator::give_back_staging(Pending& pending) {
  if (pending.staging == 0) return;
  const std::int64_t bytes = pending.operation.plan().staging_bytes;
  if (pending.state == Pending::State::failed) {
    stranded_.emplace_back(pending.staging, bytes);
  } else {
    job_.memory().release(pending.staging, bytes);
  }
  pending.staging = 0;
}

void Communicator::note_call(std::uint32_t digest) {
  history_ = (history_ ^ digest) * 0x9e3779b97f4a7c15U;
  if (machine_.network != nullptr) [[unlikely]]
    remote_calls_.note(*job_.network(), next_index_, flag_history());
}

// The high bits are the mixed ones; a flag is never zero.
std::uint32_t Communicator::flag_history() const {
  return static_cast<std::uint32_t>(history_ >> (64 - engine::kDigestBits)) | 1U;
}

void Communicator::begin(CachedPlan& plan, const void* input, void* output, Pending& pending) {
  note_call(plan.plan.digest);
  pending.operation.begin(plan.plan, plan.plan.bulk ? bulk_ : small_, input, output, next_index_++,
                          flag_history());
  if (pending.staging != 0) pending.operation.set_staging(job_.memory().at(pending.staging));
  plans_.use(plan);
}

Status Communicator::finish(Pending& pending) {
  active_.push_back(&pending);
  Pending* const awaited[] = {&pending};
  Communicator* const communicators[] = {this};
  wait_any(communicators, awaited);
  if (pending.state != Pending::State::complete) return failure();
  lend(true);
  return base::success();
}

Status Communicator::start(CachedPlan& plan, const void* input, void* output, Pending& pending) {
  if (begins_no_more()) [[unlikely]]
    return failure();
  pending.state = Pending::State::running;
  pending.started_ns = 0;
  pending.looks = 0;
  if (plan.plan.staging_bytes != 0) UNISONO_TRY(stage(plan, pending));
  begin(plan, input, output, pending);
  active_.push_back(&pending);
  // To send a long message is work that the agent can do as well.
  const bool is_long = machine_.network != nullptr && plan.plan.segments > 1;
  if (is_long && lend_when(Agent::When::now)) return base::success();
  advance();
  lend(true);
  return base::success();
}

void Communicator::withdraw(Pending& pending) {
  take_back();
  if (pending.staging != 0) {
    pending.state = Pending::State::failed;
    give_back_staging(pending);
  }
  std::erase(active_, &pending);
}

bool Communicator::progress() {
  take_back();
  return advance();
}

// False if the agent does not carry it.
bool Communicator::lend_when(Agent::When when) {
  Agent* const agent = job_.agent();
  if (lent_ || active_.empty() || agent == nullptr) return lent_;
  // A user's operator is called by the application's threads only.
  const auto calls_user = [](const Pending* p) {
    return p->operation.plan().op >= kFirstUserNumber;
  };
  if (std::ranges::any_of(active_, calls_user)) return false;
  lent_ = true;
  if (!agent->lend(*this, when)) end_lending();
  return lent_;
}

void Communicator::end_lending() {
  lent_ = false;
  if (!std::exchange(agent_awaits_credit_, false)) return;
  header_->credit_sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

// By an agent that carries this communicator it is a look at its own.
void Communicator::take_back_lent() {
  if (Agent::is_self()) return;
  job_.agent()->take_back(*this);
  end_lending();
}

bool Communicator::carry_on() {
  if (active_.empty()) return false;
  advance();
  // The agent may go to sleep after this, until another member completes something.
  if (credit_blocked() && !agent_awaits_credit_) {
    agent_awaits_credit_ = true;
    header_->credit_sleepers.fetch_add(1, std::memory_order_seq_cst);
    advance();
  }
  examine_now_and_then();
  return !active_.empty();
}

void Communicator::look() {
  progress();
  examine_now_and_then();
  adopt_failure();
}

bool Communicator::advance() {
  machine_.transport->progress();
  if (machine_.network != nullptr) job_.carry_network();
  bool any = false;
  for (std::size_t i = 0; i < active_.size();) {
    Pending& pending = *active_[i];
    const engine::Outcome outcome = pending.operation.step(machine_);
    if (outcome == engine::Outcome::finished) {
      pending.state = Pending::State::complete;
      ++statistics_.operations;
      statistics_.helped_steps += pending.operation.helped_steps();
      give_back_staging(pending);
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
      any = true;
      continue;
    }
    if (outcome == engine::Outcome::mismatch) {
      if (search_difference()) {  // which others may be found to have, meanwhile
        ++i;
        continue;
      }
      mismatch(pending);
      return true;
    }
    if (outcome == engine::Outcome::wrong_length) {
      wrong_length(pending);
      return true;
    }
    if (outcome == engine::Outcome::unreadable) {
      unreadable(pending);
      return true;
    }
    if (!machine_.direct || machine_.network != nullptr) tell_awaited(pending.operation);
    ++i;
  }
  return any;
}

// A transport that repairs losses has to know for whom to ask.
void Communicator::tell_awaited(const engine::Operation& operation) {
  const int rank =
      operation.entered() ? operation.awaited() : operation.lane().laggard(operation.sequence());
  if (rank < 0 || rank == rank_) return;
  const int job_rank = machine_.job_ranks[rank];
  if (!is_remote(rank)) return machine_.transport->awaits(job_rank);
  machine_.network->awaits(job_rank);
  if (operation.awaits_multicast()) machine_.network->awaits_multicast(job_rank);
}

void Communicator::wait_any(std::span<Communicator* const> communicators,
                            std::span<Pending* const> awaited) {
  Job& job = communicators.front()->job_;
  const auto ended = [&awaited] {
    return std::ranges::any_of(
        awaited, [](const Pending* p) { return p->state != Pending::State::running; });
  };
  wait::Waiter waiter(job.wait_policy(), job.foreign_load());
  for (Communicator* c : communicators) c->take_back();
  for (;;) {
    for (Communicator* c : communicators) c->advance();
    if (ended()) return;
    for (Communicator* c : communicators) c->examine(false);
    if (ended()) return;
    switch (waiter.next()) {
      case wait::Waiter::Next::spin:
        wait::spin_pause();
        break;
      case wait::Waiter::Next::yield:
        sched_yield();
        break;
      case wait::Waiter::Next::sleep:
        if (communicators.front()->sleep(communicators, job.watch_interval_ns())) waiter.woken();
        for (Communicator* c : communicators) {
          if (c->nic_ != nullptr) c->publish_standing();
          c->examine_after_sleep();
        }
        if (ended()) return;
        break;
    }
  }
}

}  // namespace unisono::group
