// SPDX-License-Identifier: BSD-3-Clause
#include "network/answering_thread.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "base/thread.hpp"
#include "network/sleep_on.hpp"

namespace unisono::network {
namespace {

using base::Code;
using base::Error;

// So long after a thread of the rank has looked, it is taken to be still about.
constexpr std::int64_t kThreadAboutNs = 2 * base::kMillisecond;
// The limit of a sleep with pending operations: deaths must be noticed meanwhile.
constexpr std::int64_t kBusySleepNs = 50 * base::kMillisecond;

// How long a thread sleeps that is not told of arrivals.
constexpr std::int64_t kUntoldNs = base::kMillisecond;

thread_local bool is_answering = false;

}  // namespace

AnsweringThread::~AnsweringThread() {
  stop_.store(true);
  nudge();
  if (thread_.joinable()) thread_.join();
}

base::Status AnsweringThread::start(Duties duties) {
  duties_ = std::move(duties);
  doorbell_ = base::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell_.valid() || !sleepers_.open()) {
    return Error{Code::system, fmt::format("eventfd: {}", std::strerror(errno))};
  }
  burst_timer_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!burst_timer_.valid()) return base::system_error("timerfd_create", errno);
  base::Result<std::thread> started = base::start_thread("unisono-net", [this] { run(); });
  if (!started.ok()) {
    return Error{started.error().code,
                 fmt::format("no thread for the network's agent: {}", started.error().message)};
  }
  thread_ = std::move(*started);
  if (duties_.may_gather) allow_bursts();
  return base::success();
}

// Not before this thread runs, which ends bursts. Setting a timer costs a virtual machine as much
// as two datagrams. So one that runs already stays as it is, and ends a later burst too early.
void AnsweringThread::allow_bursts() {
  const auto begun = [this](std::int64_t in_ns) {
    itimerspec time{};
    timerfd_gettime(burst_timer_.get(), &time);
    if (time.it_value.tv_sec != 0 || time.it_value.tv_nsec != 0) return;
    in_ns = std::max<std::int64_t>(in_ns, 1);  // 0 would stop the timer
    time.it_value = {.tv_sec = in_ns / base::kSecond, .tv_nsec = in_ns % base::kSecond};
    timerfd_settime(burst_timer_.get(), 0, &time, nullptr);
  };
  const std::lock_guard lock(mutex_);
  carrier_.reliable().outbox().allow_bursts({.allowed = duties_.may_gather, .begun = begun});
}

void AnsweringThread::end_burst() {
  std::uint64_t expirations = 0;
  if (read(burst_timer_.get(), &expirations, sizeof expirations) < 0) return;  // it was set anew
  const std::lock_guard lock(mutex_);
  carrier_.reliable().outbox().end_burst();
}

// This thread progresses operations too, and must not leave the datagrams to itself.
void AnsweringThread::note_look() {
  if (is_answering) return;
  looked_ns_.store(base::now_ns(), std::memory_order_relaxed);
  handed_over_.store(false, std::memory_order_relaxed);
}

void AnsweringThread::note_arrival() { sleepers_.tell_all(); }

void AnsweringThread::hand_over(bool look) {
  handed_over_.store(true);
  if (look) look_.store(true);
  if (look || rests_until_ns_.load() != 0) nudge();
}

void AnsweringThread::note_begun() {
  bool is_late;
  {
    const std::lock_guard lock(mutex_);
    is_late = carrier_.reliable().next_deadline_ns() < sleeps_until_ns_;
  }
  if (is_late) nudge();
}

// Longer than the last look of the rank's threads allows.
bool AnsweringThread::rests_too_long() const {
  return rests_until_ns_.load() > looked_ns_.load() + kThreadAboutNs;
}

// Not taken over at once: the program's next call may come before, and this thread would wake for
// its messages, too.
void AnsweringThread::note_transfers() {
  if (!rests_too_long()) [[likely]]
    return;
  bool has_transfers;
  {
    const std::lock_guard lock(mutex_);
    has_transfers = carrier_.has_transfers();
  }
  if (has_transfers) nudge();
}

AnsweringThread::Woken AnsweringThread::sleep(int sleeper, std::int64_t timeout_ns, Others others) {
  Carrier::SleepTarget target;
  bool counts_arrivals;
  {
    const std::lock_guard lock(mutex_);
    target = carrier_.sleep_target(false);
    counts_arrivals = carrier_.counts_arrivals();
  }
  const std::int64_t now = base::now_ns();
  looked_ns_.store(now + duties_.leave_ns, std::memory_order_relaxed);
  std::int64_t limit_ns = std::min({timeout_ns, target.deadline_ns - now, duties_.leave_ns});
  if (sleeper == DatagramSleepers::kUntold) limit_ns = std::min(limit_ns, kUntoldNs);
  constexpr unsigned kTold = 1U << 1, kOthers = 3U << 2;
  const bool pauses = target.pause_ns > 0;
  unsigned woken = sleep_on(
      {pauses ? -1 : target.descriptor, sleepers_.descriptor(sleeper), others.first, others.second},
      pauses ? std::min(limit_ns, target.pause_ns) : limit_ns);
  if (pauses) woken |= 1U;  // something has come, most likely
  if ((woken & kTold) != 0) sleepers_.drain(sleeper);
  const std::int64_t after = base::now_ns();
  looked_ns_.store(after);  // before rests_too_long(), as run() has them the other way round
  if (woken == 0) return after < target.deadline_ns ? Woken::by_time : Woken::by_network;
  if ((woken & kOthers) != 0) return Woken::by_other;
  return counts_arrivals ? Woken::by_network : Woken::by_uncounted;
}

void AnsweringThread::nudge() const {
  if (doorbell_.valid()) eventfd_write(doorbell_.get(), 1);
}

void AnsweringThread::run() {
  is_answering = true;
  bool busy = false;
  while (!stop_.load()) {
    const std::int64_t about_ns = looked_ns_.load(std::memory_order_relaxed) + kThreadAboutNs;
    const std::int64_t now = base::now_ns();
    if (!handed_over_.load() && now < about_ns) {
      rests_until_ns_.store(about_ns);
      if (!rests_too_long() && !handed_over_.load() && !stop_.load()) {
        sleep_until_nudged(-1, about_ns - now);
      }
      rests_until_ns_.store(0);
      continue;
    }
    const std::optional<bool> came = turn(busy);
    if (came && duties_.heard) busy = duties_.heard(*came);
  }
}

// Also until a process dies, or packets have to leave.
void AnsweringThread::sleep_until_nudged(int descriptor, std::int64_t timeout_ns) {
  constexpr unsigned kDeaths = 1U << 2, kBurst = 1U << 3;
  const unsigned woken =
      sleep_on({descriptor, doorbell_.get(), duties_.deaths, burst_timer_.get()}, timeout_ns);
  eventfd_t count = 0;
  eventfd_read(doorbell_.get(), &count);
  if ((woken & kBurst) != 0) end_burst();
  if ((woken & kDeaths) != 0 && !stop_.load()) duties_.someone_died();
}

// Sleeps until there is something to do, and does it. Returns whether something has come; nullopt
// if a thread of the rank is active.
std::optional<bool> AnsweringThread::turn(bool busy) {
  Carrier::SleepTarget target;
  std::int64_t sleep_ns;
  {
    const std::lock_guard lock(mutex_);
    target = carrier_.sleep_target(!busy);
    const std::int64_t now = base::now_ns();
    sleep_ns = target.deadline_ns - now;
    if (busy) sleep_ns = std::min(sleep_ns, kBusySleepNs);
    sleeps_until_ns_ = now + sleep_ns;
  }
  if (target.pause_ns > 0) {
    target.descriptor = -1;
    sleep_ns = std::min(sleep_ns, target.pause_ns);
  }
  if (!look_.load()) sleep_until_nudged(target.descriptor, sleep_ns);
  look_.store(false);
  const std::int64_t about_ns = looked_ns_.load(std::memory_order_relaxed) + kThreadAboutNs;
  if (!handed_over_.load() && base::now_ns() < about_ns) return std::nullopt;
  bool came;
  {
    const std::lock_guard lock(mutex_);
    came = carrier_.progress();
  }
  if (came) note_arrival();
  return came;
}

}  // namespace unisono::network
