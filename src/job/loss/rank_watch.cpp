// SPDX-License-Identifier: BSD-3-Clause
#include "job/loss/rank_watch.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "job/loss/silence.hpp"

namespace unisono::job {

RankWatch::RankWatch(const std::vector<bootstrap::RankLocation>& members, const Ranks& ranks,
                     Losses& losses, MulticastVote& multicast, Events& events,
                     network::Network* network, const base::Settings& settings)
    : ranks_(ranks),
      losses_(losses),
      multicast_(multicast),
      events_(events),
      network_(network),
      settings_(settings),
      liveness_(members) {}

std::int64_t RankWatch::interval_ns() const {
  std::int64_t limit_ns = settings_.time_ns(base::Setting::detect_timeout);
  if (network_ != nullptr) limit_ns = std::min(limit_ns, SilenceLimits::of(settings_).lost_ns);
  return limit_ns / 5;
}

void RankWatch::look(std::int64_t now_ns) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || now_ns - looked_ns_ < interval_ns() / 2) return;
  looked_ns_ = now_ns;
  bool found = mark_dead(now_ns);
  if (network_ != nullptr && ranks_.has_tables()) {
    multicast_.watch();
    found |= look_at_hosts();
  }
  if (found && ranks_.has_tables()) events_.raise();
}

void RankWatch::look_for_deaths() {
  const std::lock_guard lock(mutex_);
  if (mark_dead(base::now_ns())) events_.raise();
}

void RankWatch::look_at_multicast() {
  const std::lock_guard lock(mutex_);
  multicast_.watch();
}

bool RankWatch::mark_dead(std::int64_t now_ns) {
  bool found = false;
  const auto is_due = [&](int rank) {
    // Before there are tables, each rank looks for itself.
    return !ranks_.has_tables() ||
           is_first_to_look(ranks_.entry(rank).looked_ns, now_ns, interval_ns() / 2);
  };
  for (const int rank : liveness_.poll(is_due)) found |= losses_.mark_gone(rank, RankState::dead);
  return found;
}

// A rank of another host has an agent that answers. If it does not, it is gone or cut off, or the
// network is out for a while.
bool RankWatch::look_at_hosts() {
  bool found = false;
  const SilenceLimits limits = SilenceLimits::of(settings_);
  // Without its device this rank is of no use to the others, though it answers.
  const std::string own_loss = network_->why_lost(ranks_.own());
  if (!own_loss.empty() && losses_.mark_gone(ranks_.own(), RankState::silent, own_loss)) {
    base::log(base::LogLevel::warn, "job", "{}", own_loss);
    found = true;
  }
  for (const int r : ranks_.hosts().elsewhere()) {
    if (const auto departure = ranks_.departure(r)) {
      // It was informed after the update about it: packets kept for that rank still take up room.
      network_->forget(r, *departure);
      continue;
    }
    const std::int64_t silence_ns = network_->silence_ns(r);
    if (silence_ns > limits.lost_ns) {
      found |= losses_.mark_gone(r, RankState::silent, network_->why_lost(r));
    } else {
      log_suspicion(r, silence_ns);
    }
  }
  return found;
}

// Each host reports a silence once: by the first of its ranks that notices it.
void RankWatch::log_suspicion(int rank, std::int64_t silence_ns) {
  std::atomic<std::uint64_t>& suspected_by = ranks_.entry(rank).suspected_by;
  const auto own = static_cast<std::uint64_t>(ranks_.own()) + 1;
  const SilenceLimits limits = SilenceLimits::of(settings_);
  std::uint64_t nobody = 0;
  if (silence_ns > limits.suspect_ns &&
      suspected_by.compare_exchange_strong(nobody, own, std::memory_order_relaxed)) {
    base::log(base::LogLevel::warn, "job",
              "{} has not answered for {}; waiting until {} before it is declared lost "
              "(UNISONO_DETECT_TIMEOUT_HOSTS)",
              ranks_.hosts().name_of(rank),
              base::format_time_ns(silence_ns / base::kMillisecond * base::kMillisecond),
              base::format_time_ns(limits.lost_ns));
  } else if (suspected_by.load(std::memory_order_relaxed) == own && silence_ns == 0) {
    suspected_by.store(0, std::memory_order_relaxed);
    base::log(base::LogLevel::warn, "job", "{} is no longer suspected",
              ranks_.hosts().name_of(rank));
  }
}

bool RankWatch::is_stopped(int rank) {
  const pid_t process = ranks_.processes()[static_cast<std::size_t>(rank)];
  if (process == getpid() || ranks_.state(rank) != RankState::present) return false;
  const std::int64_t limit_ns = settings_.time_ns(base::Setting::detect_timeout);
  std::atomic<std::uint64_t>& stops = ranks_.entry(rank).stops;
  std::uint64_t before = stops.load(std::memory_order_relaxed);
  const std::int64_t now = base::now_ns();
  if (!StopWatch(before).is_due(now, limit_ns)) return StopWatch(before).is_stopped();
  const StopWatch watch = StopWatch(before).seen(process_is_stopped(process), now, limit_ns);
  // Should another rank have looked meanwhile, its look counts.
  if (!stops.compare_exchange_strong(before, watch.word(), std::memory_order_relaxed)) {
    return StopWatch(before).is_stopped();
  }
  if (watch.is_over(limit_ns) && losses_.mark_gone(rank, RankState::silent)) {
    base::log(base::LogLevel::warn, "job",
              "rank {} (process {}) has been stopped for {} (UNISONO_DETECT_TIMEOUT) while others "
              "wait for it: it is taken for lost",
              rank, process, base::format_time_ns(limit_ns));
    events_.raise();
  }
  return watch.is_stopped();
}

void RankWatch::give_up_silent(std::int64_t patience_ns) {
  for (const int r : ranks_.hosts().elsewhere()) {
    if (network_->silence_ns(r) > patience_ns / 2) {
      network_->forget(r, reliable::Departure::lost);
    }
  }
}

}  // namespace unisono::job
