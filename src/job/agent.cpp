// SPDX-License-Identifier: BSD-3-Clause
#include "job/agent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "base/thread.hpp"

namespace unisono::job {
namespace {

// If the application has not polled for this long, it is assumed to be doing something else.
constexpr std::int64_t kAboutNs = 2 * base::kMillisecond;

}  // namespace

Agent::~Agent() { stop(); }

void Agent::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  doorbells_.wake(rank_);
  if (thread_.joinable()) thread_.join();
}

base::Status Agent::start() {
  base::Result<std::thread> started = base::start_thread("unisono-agent", [this] { run(); });
  if (!started.ok()) {
    return base::Error{started.error().code,
                       fmt::format("no thread for the agent: {} (UNISONO_AGENT=off goes without)",
                                   started.error().message)};
  }
  thread_ = std::move(*started);
  return base::success();
}

bool Agent::lend(Carried& carried, When when) {
  const bool at_once = when != When::later;
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    try {
      operations_.push_back(&carried);
    } catch (const std::bad_alloc&) {
      return false;
    }
    count();
    if (!has_thread()) return true;
    // Handles events that came before the agent could know of the communicator.
    if (when != When::now && !carried.take_turn()) {
      operations_.pop_back();
      count();
      return false;
    }
    at_once_ |= at_once;
    looked_ns_ = base::now_ns();
    wake = rests_ || at_once;
  }
  if (thread_.joinable()) {
    if (wake) changed_.notify_one();
    if (when == When::now) doorbells_.wake(rank_);  // it may sleep there for another one
  } else {
    if (at_once) network_->agent().hand_over(when == When::now);
    network_->agent().note_begun();
  }
  return true;
}

// With the lock, as the next one.
void Agent::count() {
  with_agent_.store(static_cast<int>(operations_.size()), std::memory_order_relaxed);
}

// Those that have ended are of no interest any more, though they are still lent.
bool Agent::carry_all() {
  std::erase_if(operations_, [](Carried* carried) { return !carried->take_turn(); });
  count();
  return !operations_.empty();
}

void Agent::take_back(Carried& carried) {
  const std::lock_guard lock(mutex_);
  std::erase(operations_, &carried);
  count();
  if (has_thread()) looked_ns_ = base::now_ns();
}

bool Agent::carry() {
  const std::lock_guard lock(mutex_);
  return carry_all();
}

// The thread that has the lock is carrying, too.
bool Agent::try_to_carry() {
  if (Carried::is_thread_in_turn()) return false;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return !lock.owns_lock() || carry_all();
}

void Agent::rest(std::unique_lock<std::mutex>& lock) {
  rests_ = true;
  changed_.wait(lock, [this] { return stop_ || !operations_.empty(); });
  rests_ = false;
}

void Agent::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      const std::int64_t wait_ns = looked_ns_ + kAboutNs - base::now_ns();
      if (!at_once_ && wait_ns > 0) {
        changed_.wait_for(lock, std::chrono::nanoseconds(wait_ns),
                          [this] { return stop_ || at_once_; });
      } else if (operations_.empty()) {
        rest(lock);
      }
      if (stop_) return;
      at_once_ = false;
      if (operations_.empty()) continue;
    }
    const std::uint32_t announced = doorbells_.announce(rank_);
    const bool more = carry();
    if (more) doorbells_.sleep(rank_, announced, watch_.interval_ns());
    doorbells_.withdraw(rank_);
    if (more) watch_.look(base::now_ns());
  }
}

}  // namespace unisono::job
