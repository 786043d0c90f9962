// SPDX-License-Identifier: BSD-3-Clause
// Agent: progresses split-phase operations while the thread that started them does something else.
// A communicator is lent to it when an operation was started and not finished at once. The
// application's next call on it takes it back, so the two never touch it at the same time. The
// agent sleeps unless there is an event. In jobs of several hosts with one rank on each, the
// network's thread does its work, but rests while a thread of the rank waits. Elsewhere it has a
// thread of its own, which sleeps on the rank's doorbell, or none. What no thread does then, the
// rank's threads do while they wait for another communicator: the members of the one that is lent
// may have to be done with it before they come to the other. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "job/carried.hpp"
#include "job/loss/rank_watch.hpp"
#include "job/wait_loans.hpp"
#include "network/network.hpp"
#include "wait/doorbells.hpp"

namespace unisono::job {

class Agent {
 public:
  // The agent of that rank. The thread of `network` does its work if that has none of its own;
  // null: none does. All outlive it.
  Agent(int rank, wait::Doorbells& doorbells, RankWatch& watch, network::Network* network)
      : rank_(rank), doorbells_(doorbells), watch_(watch), network_(network) {}
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Starts a thread of its own, if no other thread does its work.
  base::Status start();
  // Ends that thread, and waits for its end. From then on nothing is carried but by others.
  void stop();

  // When the agent takes over. later: after a moment in which the application may take the
  // communicator back, as it may be polling. at_once: when more has come. now: there is an
  // operation to begin.
  enum class When : std::uint8_t { later, at_once, now };
  // Whether lent operations go on while the rank computes.
  bool has_thread() const { return network_ != nullptr || thread_.joinable(); }
  // The communicator has operations to progress. False if they ended during the call, or without
  // memory: its rank then carries them in its calls only. `now` is for an agent that has a thread.
  bool lend(Carried& carried, When when);
  // Waits until the agent does not use it any more.
  void take_back(Carried& carried);

  // Those that are not for the agent's own threads.
  WaitLoans& wait_loans() { return wait_loans_; }

  // Progresses the lent communicators; true if there are any. For the agent's threads.
  bool carry();
  // For a thread that waits: all that no other thread progresses meanwhile.
  bool carry_in_wait() {
    const bool any = wait_loans_.carry();
    return (with_agent_.load(std::memory_order_relaxed) > 0 && !thread_.joinable() &&
            try_to_carry()) ||
           any;
  }

 private:
  bool carry_all();
  bool try_to_carry();
  void count();
  void run();
  void rest(std::unique_lock<std::mutex>& lock);

  const int rank_;
  wait::Doorbells& doorbells_;
  RankWatch& watch_;
  network::Network* const network_;
  std::mutex mutex_;  // held while communicators are carried
  std::condition_variable changed_;
  std::vector<Carried*> operations_;
  std::atomic<int> with_agent_ = 0;  // how many
  std::int64_t looked_ns_ = 0;       // when the application last took something back
  bool at_once_ = false;
  bool rests_ = false;  // until it is notified that something was lent
  bool stop_ = false;
  WaitLoans wait_loans_;
  std::thread thread_;
};

}  // namespace unisono::job
