// SPDX-License-Identifier: BSD-3-Clause
// Network: a rank's connection to ranks on other hosts. The rank's threads use it at once with the
// thread that answers for the rank while it computes (AnsweringThread). Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/result.hpp"
#include "bootstrap/job_info.hpp"
#include "memory/job_memory.hpp"
#include "network/answering_thread.hpp"
#include "network/carrier.hpp"
#include "network/locked_landings.hpp"

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
  // The job tries the second carrier, where there is one.
  void take_other_multicast();
  bool multicasts() const { return multicasts_; }

  // Before the agent: long puts and gets go by remote memory from now on.
  base::Status use_bulk(std::unique_ptr<transport::RemoteMemory> memory,
                        reliable::BulkOptions options);
  std::string_view bulk_name() const { return carrier_.bulk_name(); }

  // The thread that answers for this rank; it runs from start() on.
  AnsweringThread& agent() { return agent_; }

  const transport::Capabilities& capabilities() const override;
  // A message of several puts is one thread's until the last, which has the flag: others wait.
  void put(const transport::Put& message) override;
  void put_to_all(const transport::Put& message) override;
  void get(const transport::Get& wanted) override;
  int progress() override;
  void awaits(int rank) override;
  void awaits_multicast(int origin) override;
  transport::Landings* landings() override { return &landings_; }
  // look(group): what is known of this rank's multicasts.
  template <class Look>
  void look_at_multicasts(const Look& look) {
    const std::lock_guard lock(mutex_);
    look(carrier_.reliable().group());
  }

  // The packets received from other hosts, except acknowledgements and questions whether this rank
  // lives.
  reliable::Reliable::Arrived arrived() {
    const std::lock_guard lock(mutex_);
    return carrier_.arrived();
  }

  // Whether a long message comes so slowly that polling for it all the time is not worthwhile.
  bool comes_slowly() {
    const std::lock_guard lock(mutex_);
    return carrier_.reliable().pause_ns() > 0;
  }

  // While held, this process writes no received data to memory.
  std::unique_lock<std::mutex> hold() { return std::unique_lock(mutex_); }

  // See Reliable.
  int unreached_by();
  std::int64_t silence_ns(int rank);
  // Why transfers with that rank ended its part, though it may answer; empty if none did. For this
  // rank: why it has no remote memory any more.
  std::string why_lost(int rank);
  void confirm(int rank);
  // Does nothing if it was done before.
  void forget(int rank, reliable::Departure how);
  // Tells of a rank of another host how it has ceased to answer; nullopt: it has not.
  using Departures = std::function<std::optional<reliable::Departure>(int rank)>;
  // Until all that was put has arrived, but at ranks that are gone, or the time is over. False:
  // some may not have arrived.
  bool settle(std::int64_t patience_ns, const Departures& departures);
  // The same. Then it tells the others how far their packets have come.
  void finish(std::int64_t patience_ns, const Departures& departures);

 private:
  std::mutex mutex_;                        // of carrier_
  std::atomic<std::thread::id> sending_{};  // the thread that holds it for the puts that follow
  Carrier carrier_;
  LockedLandings landings_;
  bool multicasts_ = false;  // does not change once the agent runs
  AnsweringThread agent_;    // it uses the rest
};

}  // namespace unisono::network
