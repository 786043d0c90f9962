// SPDX-License-Identifier: BSD-3-Clause
#include "job/start/start_up.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "wait/wait_until.hpp"

namespace unisono::job {
namespace {

using base::Code;
using base::Error;

// How long a waiting rank sleeps at a time: nobody wakes it during the start.
constexpr std::int64_t kStartPauseNs = 200'000;

// A failure as sent to another host: a word that a put can write. The text is put before it, to an
// entry of the rank's own, so that texts of several ranks do not mix.
constexpr unsigned kCodeBit = 32;
std::uint64_t failure_word(int rank, Code code) {
  return static_cast<std::uint64_t>(code) << kCodeBit | static_cast<std::uint32_t>(rank + 1);
}

// In the host's record of a failure, in place of a rank: a rank of the host was told of it.
constexpr std::uint64_t kToldIndex = std::numeric_limits<std::uint32_t>::max();

// Collects the confirmations of the hosts' first ranks.
constexpr int kCollector = 0;

}  // namespace

StartUp::StartUp(const Ranks& ranks, JobHeader& header, Losses& losses, network::Network* network,
                 bootstrap::StartConnections* connections, const base::Settings& settings,
                 std::function<void()> work)
    : ranks_(ranks),
      header_(header),
      losses_(losses),
      network_(network),
      connections_(connections),
      settings_(settings),
      work_(std::move(work)),
      deadline_ns_(base::now_ns() + settings.time_ns(base::Setting::start_timeout)) {}

// Other ranks may need this core to start, so it is not kept.
base::Status StartUp::await(const std::function<bool()>& condition,
                            const std::function<std::string()>& missing) {
  base::Status result = base::success();
  const auto turn = [&] {
    work_();
    hear();
    if (condition()) return true;
    const std::optional<Error> why = cannot_wait(missing);
    if (why) result = *why;
    return why.has_value();
  };
  const auto sleep = [] {
    const timespec pause{.tv_sec = 0, .tv_nsec = kStartPauseNs};
    nanosleep(&pause, nullptr);
    return false;
  };
  wait::CoreContention contention;
  wait::Waiter waiter({.spin_ns = 0, .short_slices = wait::ShortSlices::never}, contention);
  wait::wait_until(
      waiter, turn, [] { return false; }, sleep);
  return result;
}

// A rank that was told of a failure ends. That is no loss, though this rank may see it before it is
// told itself. So it looks for a loss first, and for reasons then.
std::optional<Error> StartUp::cannot_wait(const std::function<std::string()>& missing) {
  const auto loss = losses_.first();
  if (loss) hear_now();
  if (const auto failure = reported_failure()) return failure;
  const auto failure = told_failure();
  if (failure && (!loss || failure->code != Code::rank_lost)) return failure;
  if (loss) return lost(*loss);
  if (base::now_ns() <= deadline_ns_) return std::nullopt;
  const std::int64_t limit = settings_.time_ns(base::Setting::start_timeout);
  return Error{Code::timeout,
               fmt::format("rank {}: the job did not start within {} (UNISONO_START_TIMEOUT): {}",
                           ranks_.own(), base::format_time_ns(limit), missing())};
}

// A lone rank of a host is seen by nobody there. If its process ends, its connection ends.
void StartUp::hear() {
  const std::int64_t now_ns = base::now_ns();
  if (now_ns - heard_ns_ < base::kMillisecond) return;
  heard_ns_ = now_ns;
  hear_now();
}

void StartUp::hear_now() {
  if (connections_ == nullptr) return;
  try {
    connections_->step();
    for (const int rank : connections_->take_lost()) losses_.mark_gone(rank, RankState::dead);
  } catch (const std::exception&) {
    // It lacks memory. Others may have started already, so that is no error: it listens again.
  }
}

Error StartUp::lost(const Losses::Loss& loss) const {
  const std::string reason = losses_.reason(loss.rank);
  return ranks_.cannot_start_without(loss.rank, reason.empty() ? how_it_went(loss.how) : reason);
}

base::Status StartUp::await_ranks() {
  const auto all_came = [this] {
    if (losses_.first()) return false;
    for (int r = 0; r < ranks_.count(); ++r) {
      const RankState state = ranks_.state(r);
      if (state == RankState::absent || state == RankState::dead) return false;
    }
    return true;
  };
  return await(all_came, [this] { return "missing: " + ranks_.absent(); });
}

void StartUp::publish_world(std::int64_t offset) {
  header_.world_offset.store(offset, std::memory_order_release);
}

base::Result<std::int64_t> StartUp::await_world() {
  std::int64_t offset = 0;
  const int first = ranks_.hosts().first_here();
  const auto there_or_never = [&] {
    // In this order, because the rank may publish and leave in between.
    const bool left = ranks_.state(first) == RankState::left;
    offset = header_.world_offset.load(std::memory_order_acquire);
    return offset != 0 || left;
  };
  UNISONO_TRY(await(there_or_never, [first] {
    return fmt::format("rank {} did not set up the world communicator", first);
  }));
  if (offset == 0) return ranks_.cannot_start_without(first, "it left before its part was done");
  return offset;
}

// The first failure is reported to all. A rank that fails because of it, or after it, reports
// nothing; if it has a reason of its own, it returns that.
Error StartUp::fail(const Error& why) {
  has_failed_ = true;
  const Error reported = report(why);
  // Last, because the reports above say more. Without a word, this rank would be taken for lost.
  if (connections_ != nullptr) connections_->tell(reported);
  return reported;
}

Error StartUp::report(const Error& why) {
  const bool is_own = why.code != Code::rank_lost && why.code != Code::timeout;
  if (const auto known = reported_failure()) return is_own ? why : *known;
  if (told_failure()) {  // so are all, but some may see the end of this rank before
    report_failure(header_.start_failure, {.index = kToldIndex, .error = *connections_->failure()});
    return why;
  }
  if (losses_.first()) {
    tell_loss();
    return why;
  }
  if (why.code == Code::timeout) return why;  // all see it for themselves
  if (!report_failure(header_.start_failure,
                      {.index = static_cast<std::uint64_t>(ranks_.own()), .error = why})) {
    return why;
  }
  if (network_ != nullptr) send_failure(why);
  return why;
}

base::Status StartUp::tell_errors_of(const std::function<base::Status()>& part) {
  try {
    base::Status done = part();
    if (done.ok()) return done;
    return fail(done.error());
  } catch (const std::exception& thrown) {
    return fail(base::error_of(thrown));
  }
}

// Only the lost rank's own host sees its end, and only some ranks wait for the rank.
void StartUp::tell_loss() {
  if (network_ == nullptr) return;
  // Another host may have told of it. Puts to the lost rank need not arrive.
  if (const auto loss = losses_.first()) losses_.mark_gone(loss->rank, loss->how);
  losses_.tell_first();
  settle();
}

void StartUp::send_failure(const Error& why) {
  const FailureNotice::Text text = notice_text({.error = why});
  // Their memory belongs to their whole host.
  for (const int first : ranks_.hosts().firsts_elsewhere()) {
    if (ranks_.has_tables()) {
      network_->put({.target = first,
                     .source = reinterpret_cast<const std::byte*>(&text),
                     .place = reinterpret_cast<std::byte*>(&ranks_.entry(ranks_.own()).report),
                     .bytes = sizeof text});
    }
    network_->put({.target = first,
                   .flag = reinterpret_cast<std::uint64_t*>(&header_.start_failed_elsewhere),
                   .flag_value = failure_word(ranks_.own(), why.code)});
  }
  settle();
}

void StartUp::settle() {
  network_->settle(settings_.time_ns(base::Setting::detect_timeout),
                   [this](int rank) -> std::optional<reliable::Departure> {
                     if (!ranks_.has_tables()) return std::nullopt;
                     return ranks_.departure(rank);
                   });
}

// Over the rendezvous' connections.
std::optional<Error> StartUp::told_failure() const {
  if (connections_ == nullptr || !connections_->failure()) return std::nullopt;
  return told(*connections_->failure());
}

Error StartUp::told(const Error& why) const {
  return {why.code, fmt::format("rank {}: the job cannot start: {}", ranks_.own(), why.message)};
}

std::optional<Error> StartUp::reported_failure() const {
  const auto tell = [this](int rank, Code code, std::string_view why) {
    return Error{code, fmt::format("rank {}: the job cannot start, as {} failed: {}", ranks_.own(),
                                   ranks_.hosts().name_of(rank), why)};
  };
  if (const auto here = read_failure(header_.start_failure)) {
    if (here->cause == kToldIndex) return told(here->error);
    return tell(static_cast<int>(here->cause), here->error.code, here->error.message);
  }
  const std::uint64_t word = header_.start_failed_elsewhere.load(std::memory_order_acquire);
  if (word == 0) return std::nullopt;
  const auto rank = static_cast<int>(static_cast<std::uint32_t>(word)) - 1;
  const bool reports = ranks_.has_tables() && ranks_.entry(rank).reports_loss == 0;
  const char* const why = reports ? ranks_.entry(rank).report.text : "";
  return tell(rank, static_cast<Code>(word >> kCodeBit), *why == '\0' ? "it says why" : why);
}

// The ranks of a host say it in its memory, its first one to the collector, and that one to all.
base::Status StartUp::confirm() {
  ranks_.entry(ranks_.own()).started.store(1, std::memory_order_release);
  const auto all_here = [this] {
    return std::ranges::all_of(ranks_.hosts().here(), [this](int r) {
      return ranks_.entry(r).started.load(std::memory_order_acquire) != 0;
    });
  };
  const auto late_here = [this] {
    return "these are not ready: " + ranks_.names_of_late(ranks_.hosts().here(), [this](int r) {
      return ranks_.entry(r).started.load(std::memory_order_acquire) != 0;
    });
  };
  if (network_ == nullptr) return await(all_here, late_here);
  const bool reports = ranks_.is_first_here() && ranks_.own() != kCollector;
  if (ranks_.is_first_here()) {
    UNISONO_TRY(await(all_here, late_here));
    if (reports) confirm_host();
  }
  if (ranks_.own() == kCollector) UNISONO_TRY(confirm_for_all());
  const auto all_started = [this, reports] {
    if (reports) network_->awaits(kCollector);
    return header_.all_started.load(std::memory_order_acquire) != 0;
  };
  return await(all_started,
               [] { return fmt::format("rank {} has not confirmed the start", kCollector); });
}

void StartUp::confirm_host() {
  network_->put({.target = kCollector,
                 .flag = reinterpret_cast<std::uint64_t*>(&ranks_.entry(ranks_.own()).host_started),
                 .flag_value = 1});
}

base::Status StartUp::confirm_for_all() {
  const auto all_hosts = [this] {
    for (const int first : ranks_.hosts().firsts()) {
      if (first == kCollector || ranks_.entry(first).host_started.load() != 0) continue;
      network_->awaits(first);
      return false;
    }
    return true;
  };
  UNISONO_TRY(await(all_hosts, [this] {
    return "the hosts of these are not ready: " +
           ranks_.names_of_late(ranks_.hosts().firsts(), [this](int first) {
             return first == kCollector || ranks_.entry(first).host_started.load() != 0;
           });
  }));
  header_.all_started.store(1, std::memory_order_release);
  for (const int first : ranks_.hosts().firsts()) {
    if (first == kCollector) continue;
    network_->put({.target = first,
                   .flag = reinterpret_cast<std::uint64_t*>(&header_.all_started),
                   .flag_value = 1});
  }
  return base::success();
}

void tell_before_start(memory::JobMemory& memory, const bootstrap::JobInfo& info,
                       const base::Error& why) {
  auto& header = *reinterpret_cast<JobHeader*>(memory.at(memory::kSegmentAlignment / 2));
  report_failure(header.start_failure,
                 {.index = static_cast<std::uint64_t>(info.rank), .error = why});
  if (info.connections != nullptr) info.connections->tell(why);
}

}  // namespace unisono::job
