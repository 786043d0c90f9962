// SPDX-License-Identifier: BSD-3-Clause
// Network: a rank's connection to ranks on other hosts: the reliable transport, used by the rank's
// threads and by an agent that answers for it. A rank that computes has to repeat lost packets, and
// to show that it lives. So while no thread of the rank polls, the agent's thread sleeps on the
// datagrams and progresses the transport. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "bootstrap/job_info.hpp"
#include "memory/job_memory.hpp"
#include "reliable/bulk.hpp"
#include "reliable/reliable.hpp"

namespace unisono::network {

class Network final : public transport::Transport {
 public:
  explicit Network(std::unique_ptr<reliable::Reliable> reliable);
  // Over the datagrams of `info`, into the job's memory.
  // `suspect_ns`: after how long a peer that does not answer is suspected to be gone.
  static std::unique_ptr<Network> over(bootstrap::JobInfo& info, const memory::JobMemory& memory,
                                       std::int64_t suspect_ns);
  ~Network() override;

  // Before the agent. See Reliable.
  transport::MulticastReport probe_multicast(std::int64_t deadline_ns);
  // The job has found that the network carries it, or that it does not.
  void allow_multicast() { multicasts_ = true; }
  void give_up_multicast(std::string note);
  bool multicasts() const { return multicasts_; }

  // Before the agent: long puts and gets go by remote memory from now on.
  base::Status use_bulk(std::unique_ptr<transport::RemoteMemory> memory,
                        reliable::BulkOptions options);
  std::string_view bulk_name() const { return bulk_ == nullptr ? "" : bulk_->memory().name(); }

  // Callbacks of the agent's thread. `heard` is called when it has polled the network, with whether
  // something had come; it returns whether more is awaited. `someone_died` is called when `deaths`
  // (-1: none) is readable, and makes it unreadable.
  struct Duties {
    std::function<bool(bool)> heard;
    int deaths = -1;
    std::function<void()> someone_died;
  };
  // The agent begins.
  base::Status start_agent(Duties duties);

  const transport::Capabilities& capabilities() const override;
  // A message of several puts is one thread's until the last, which has the flag: others wait.
  void put(const transport::Put& message) override;
  void put_to_all(const transport::Put& message) override;
  void get(const transport::Get& wanted) override;
  int progress() override;
  void awaits(int rank) override;
  void awaits_multicast(int origin) override;

  // For a thread of the rank, instead of the agent: announce, check once more, then sleep, then
  // withdraw. The sleep ends when something comes, also if another thread takes it, when one of
  // `others` is readable, or after `timeout_ns`.
  enum class Woken : std::uint8_t { by_time, by_datagrams, by_other };
  void announce() { sleepers_.fetch_add(1); }
  struct Others {
    int first = -1, second = -1;  // descriptors; -1: none
  };
  Woken sleep(std::int64_t timeout_ns, Others others);
  void withdraw() { sleepers_.fetch_sub(1); }
  // The caller will sleep elsewhere: the agent takes over at once. `look`: it also polls if nothing
  // comes.
  void hand_over(bool look = false);

  // The packets received from other hosts, except acknowledgements and questions whether this rank
  // lives.
  reliable::Reliable::Arrived arrived() {
    const std::lock_guard lock(mutex_);
    return reliable_->arrived();
  }

  // Whether a long message comes so slowly that polling for it all the time is not worthwhile.
  bool comes_slowly() {
    const std::lock_guard lock(mutex_);
    return reliable_->pause_ns() > 0;
  }

  // While held, this process writes no received data to memory.
  std::unique_lock<std::mutex> hold() { return std::unique_lock(mutex_); }

  // See Reliable.
  int unreached_by();
  std::int64_t silence_ns(int rank);
  // Why transfers with that rank ended its part, though it may answer; empty if none did.
  std::string why_lost(int rank);
  void confirm(int rank);
  void forget(int rank);
  // The same, if it was not done before.
  void forget_once(int rank);
  // Until all that was put has arrived, but at ranks that have left, or the time is over. False:
  // some may not have arrived.
  bool settle(std::int64_t patience_ns, const std::function<bool(int rank)>& has_left);
  // The same, and says goodbye.
  void finish(std::int64_t patience_ns, const std::function<bool(int rank)>& has_left);

 private:
  void run_agent();
  std::optional<bool> agent_turn(bool busy);
  bool progress_held();
  void nudge() const;
  void sleep_as_agent(int descriptor, std::int64_t timeout_ns);
  // The next ones under the mutex.
  transport::Transport& carrier();
  void forget_held(int rank);
  // The descriptor to sleep on, and until when; used only at that time.
  struct Bed {
    int descriptor;
    std::int64_t deadline_ns;
    std::int64_t pause_ns;  // first, without looking at the descriptor
  };
  Bed bed();

  std::mutex mutex_;                        // of reliable_
  std::atomic<std::thread::id> sending_{};  // the thread that holds it for the puts that follow
  std::unique_ptr<reliable::Reliable> reliable_;
  std::unique_ptr<reliable::Bulk> bulk_;  // beside reliable_; null: there is none
  Duties duties_;
  base::Descriptor bell_;   // eventfd: the agent is to look around
  base::Descriptor taken_;  // eventfd: another thread than the sleeping ones took arrivals
  std::atomic<int> sleepers_{0};
  std::atomic<std::int64_t> looked_ns_{0};  // when a thread of the rank last carried it on
  std::atomic<bool> agent_rests_{false};    // it leaves the datagrams to the rank's threads
  std::atomic<bool> handed_over_{false};
  std::atomic<bool> look_{false};  // the agent's next turn is at once
  std::atomic<bool> stop_{false};
  bool multicasts_ = false;  // does not change once the agent runs
  std::thread agent_;
};

}  // namespace unisono::network
