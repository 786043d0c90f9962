// SPDX-License-Identifier: BSD-3-Clause
// Liveness: notices the death of the processes behind a job's ranks. It uses a pidfd each, or looks
// at /proc where pidfds are missing or the limit of descriptors is reached. poll() never blocks. It
// costs one system call for up to kMostDescriptors processes while none has ended, and several for
// each of the others. It is for waits that have lasted a while, not for the data path. One thread
// at a time. Also measures how long a living process has
// been stopped (decision 35).
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "bootstrap/job_info.hpp"

namespace unisono::job {

class Liveness {
 public:
  // A job of more processes watches the rest through /proc, to leave descriptors to the
  // application.
  static constexpr std::size_t kMostDescriptors = 256;
  enum class Method { automatic, proc_only };  // proc_only: as on a kernel without pidfd_open

  // Members with this process's pid (itself, ranks that are its threads) are not watched, nor those
  // of other hosts. A member
  // that is dead already is reported by the first poll().
  explicit Liveness(const std::vector<bootstrap::RankLocation>& members,
                    Method method = Method::automatic);

  // The ranks whose process has ended since the last call, ascending; each is reported once. A
  // process that has ended but was not yet waited for by its parent counts as ended. A look at
  // /proc for the process of a rank is made if `is_due` says so.
  std::vector<int> poll(const std::function<bool(int rank)>& is_due = [](int) { return true; });

  // Readable while poll() would tell of a process that ended after the constructor, as far as these
  // are watched by pidfds; -1: none are. To sleep on.
  int descriptor() const { return ended_.get(); }

  // Processes still watched.
  std::size_t watched() const { return by_descriptor_.size() + by_proc_.size(); }

 private:
  struct Process {
    pid_t pid = 0;
    std::vector<int> ranks;
    base::Descriptor pidfd;  // by_descriptor_ only
    // by_proc_ only: tells the process from a later one with its pid; empty: not yet read.
    std::string start_time;
  };
  void watch(Process process, Method method);
  bool may_have_ended() const;

  std::vector<Process> by_descriptor_;
  std::vector<pollfd> poll_set_;  // parallel to by_descriptor_
  std::vector<Process> by_proc_;
  std::vector<int> dead_;   // not reported yet
  base::Descriptor ended_;  // epoll of the pidfds
  bool has_all_ = true;     // of them
};

// Whether the caller is to look at a rank's process now. One of all ranks of the host is told so in
// each interval, and what it finds is there for all. Otherwise each of many ranks would read the
// records of all. `looked_ns` is the rank's, in memory that they share. Any thread.
bool is_first_to_look(std::atomic<std::int64_t>& looked_ns, std::int64_t now_ns,
                      std::int64_t interval_ns);

// Whether the process is stopped (SIGSTOP and its like). Not while a debugger holds it, nor if
// /proc does not tell. Any thread.
bool process_is_stopped(pid_t pid);

// How long a process has been seen stopped, and when it was last seen. It is one word, so that all
// ranks that wait for the process share their observations. It does not count times without
// observation. If two looks are further apart than half the limit, it begins anew, because the
// observer may have been stopped itself. A value; 0 is the initial word.
class StopWatch {
 public:
  explicit StopWatch(std::uint64_t word) : word_(word) {}

  // Whether the last look is longer ago than a tenth of the limit.
  bool is_due(std::int64_t now_ns, std::int64_t limit_ns) const;
  // After a look.
  StopWatch seen(bool stopped, std::int64_t now_ns, std::int64_t limit_ns) const;

  bool is_stopped() const { return stopped_ms() != 0; }
  // Whether it was stopped for as long as the limit.
  bool is_over(std::int64_t limit_ns) const;
  std::uint64_t word() const { return word_; }

 private:
  // 0: it ran; else one more than the time for which it has been seen stopped.
  std::uint32_t stopped_ms() const { return static_cast<std::uint32_t>(word_); }
  std::uint32_t looked_ms() const { return static_cast<std::uint32_t>(word_ >> 32); }

  std::uint64_t word_;
};

}  // namespace unisono::job
