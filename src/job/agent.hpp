// SPDX-License-Identifier: BSD-3-Clause
// Agent: carries split-phase operations on while the thread that started them does something else.
// A communicator is lent to it when an operation was started and not finished at once, and taken
// back by the next call that the application makes on it, so the two never touch it at the same
// time. It sleeps unless something has come. In jobs of several hosts with one rank on each, the
// network's thread does its work; elsewhere it has a thread of its own, which sleeps on the rank's
// bell. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.hpp"

namespace unisono::job {

class Job;

// What the agent carries on: the operations of a communicator.
class Carried {
 public:
  virtual ~Carried() = default;
  // One turn; false if nothing is left to do.
  virtual bool carry_on() = 0;
};

class Agent {
 public:
  explicit Agent(Job& job) : job_(job) {}
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Begins a thread of its own, where no other one carries it.
  base::Status start();
  // Ends that thread, and waits for its end. From then on nothing is carried but by others.
  void stop();

  // When the agent takes over: after a moment in which the application may take it back, as it may
  // be polling; at once, when more has come; or now, for there is an operation to begin.
  enum class When : std::uint8_t { later, at_once, now };
  // The communicator has operations to be carried on; false if that ended while it was lent.
  bool lend(Carried& carried, When when);
  // Waits until the agent has let go of it.
  void take_back(Carried& carried);

  // Carries on what is lent; true if something is. By the agent's threads.
  bool carry();
  // Whether the calling thread is carrying.
  static bool is_self();

 private:
  static bool carry_one(Carried& carried);
  void run();
  void rest(std::unique_lock<std::mutex>& lock);

  Job& job_;
  std::mutex mutex_;  // held while communicators are carried
  std::condition_variable changed_;
  std::vector<Carried*> lent_;
  std::int64_t looked_ns_ = 0;  // when the application last took something back
  bool at_once_ = false;
  bool rests_ = false;  // until it is told that something was lent
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace unisono::job
