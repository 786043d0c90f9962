// SPDX-License-Identifier: BSD-3-Clause
#include "job/loss/liveness.hpp"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/process_record.hpp"

namespace unisono::job {
namespace {

// A record may be missing for lack of descriptors, too.
bool is_unknown_to_kernel(pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

// Notes the start of a process whose record it reads for the first time.
bool has_ended(pid_t pid, std::string& start_time) {
  const std::optional<base::ProcessRecord> record = base::read_process(pid);
  if (!record) return is_unknown_to_kernel(pid);
  if (start_time.empty()) start_time = record->start_time;
  return record->start_time != start_time || record->state == 'Z' || record->state == 'X';
}

// A truncated time; only differences are used.
std::uint32_t milliseconds(std::int64_t time_ns) {
  return static_cast<std::uint32_t>(time_ns / base::kMillisecond);
}

}  // namespace

Liveness::Liveness(const std::vector<bootstrap::RankLocation>& members, Method method) {
  std::map<pid_t, std::vector<int>> processes;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    if (members[rank].pid == getpid() || members[rank].pid == 0) continue;
    processes[members[rank].pid].push_back(static_cast<int>(rank));
  }
  for (auto& [pid, ranks] : processes) {
    Process process;
    process.pid = pid;
    process.ranks = std::move(ranks);
    watch(std::move(process), method);
  }
}

void Liveness::watch(Process process, Method method) {
  if (method == Method::automatic && by_descriptor_.size() + 1 < kMostDescriptors) {
    // glibc has no wrapper before 2.36. The descriptor is close-on-exec by itself.
    process.pidfd.reset(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
    if (process.pidfd.valid()) {
      poll_set_.push_back({process.pidfd.get(), POLLIN, 0});
      if (!ended_.valid()) ended_.reset(epoll_create1(EPOLL_CLOEXEC));
      // Without this, deaths are noticed by poll() alone.
      epoll_event event{.events = EPOLLIN, .data = {}};
      has_all_ &= ended_.valid() &&
                  epoll_ctl(ended_.get(), EPOLL_CTL_ADD, process.pidfd.get(), &event) == 0;
      by_descriptor_.push_back(std::move(process));
      return;
    }
    if (errno == ESRCH) {
      dead_.insert(dead_.end(), process.ranks.begin(), process.ranks.end());
      return;
    }
  }
  if (has_ended(process.pid, process.start_time)) {
    dead_.insert(dead_.end(), process.ranks.begin(), process.ranks.end());
    return;
  }
  by_proc_.push_back(std::move(process));
}

// A look at all of them costs a step for each.
bool Liveness::may_have_ended() const {
  if (poll_set_.empty() || !has_all_) return !poll_set_.empty();
  pollfd any{ended_.get(), POLLIN, 0};
  return ::poll(&any, 1, 0) != 0;
}

std::vector<int> Liveness::poll(const std::function<bool(int rank)>& is_due) {
  std::vector<int> dead = std::exchange(dead_, {});
  const auto told = [&dead](const Process& process) {
    dead.insert(dead.end(), process.ranks.begin(), process.ranks.end());
  };
  // A negative count (EINTR, no memory) means: nothing learnt this time.
  if (may_have_ended() && ::poll(poll_set_.data(), poll_set_.size(), 0) > 0) {
    for (std::size_t i = poll_set_.size(); i-- > 0;) {
      if (poll_set_[i].revents == 0) continue;
      told(by_descriptor_[i]);
      // A child that the application forked may have the pidfd as well, so closing is not enough.
      epoll_ctl(ended_.get(), EPOLL_CTL_DEL, by_descriptor_[i].pidfd.get(), nullptr);
      by_descriptor_.erase(by_descriptor_.begin() + static_cast<std::ptrdiff_t>(i));
      poll_set_.erase(poll_set_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  std::erase_if(by_proc_, [&](Process& process) {
    const bool ended = is_due(process.ranks.front()) && has_ended(process.pid, process.start_time);
    if (ended) told(process);
    return ended;
  });
  std::sort(dead.begin(), dead.end());
  return dead;
}

bool is_first_to_look(std::atomic<std::int64_t>& looked_ns, std::int64_t now_ns,
                      std::int64_t interval_ns) {
  std::int64_t last_ns = looked_ns.load(std::memory_order_relaxed);
  return now_ns - last_ns >= interval_ns &&
         looked_ns.compare_exchange_strong(last_ns, now_ns, std::memory_order_relaxed);
}

bool process_is_stopped(pid_t pid) {
  const std::optional<base::ProcessRecord> record = base::read_process(pid);
  return record && record->state == 'T';
}

// Differences are right also when the 32 bits of the time begin again, after 49 days.
bool StopWatch::is_due(std::int64_t now_ns, std::int64_t limit_ns) const {
  const std::uint32_t since_ms = milliseconds(now_ns) - looked_ms();
  return word_ == 0 || since_ms >= milliseconds(limit_ns / 10);
}

StopWatch StopWatch::seen(bool stopped, std::int64_t now_ns, std::int64_t limit_ns) const {
  const std::uint32_t now_ms = milliseconds(now_ns);
  const std::uint32_t since_ms = now_ms - looked_ms();
  std::uint32_t stopped_ms = 0;
  if (stopped) {
    const bool goes_on = is_stopped() && since_ms <= milliseconds(limit_ns / 2);
    stopped_ms = goes_on ? this->stopped_ms() + since_ms : 1;
  }
  return StopWatch(std::uint64_t{now_ms} << 32 | stopped_ms);
}

bool StopWatch::is_over(std::int64_t limit_ns) const {
  return stopped_ms() > milliseconds(limit_ns);
}

}  // namespace unisono::job
