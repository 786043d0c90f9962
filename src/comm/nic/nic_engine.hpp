// SPDX-License-Identifier: BSD-3-Clause
// NicEngine: the engine of a communicator with a NIC path. It posts operations in the order of
// their starts, as many as its group has room for (nic_group.hpp). They end in any order. In the
// normal case, ranks exchange no progress. When the first of them takes long, the engine looks for
// the reason: lost packets, a member that has made a different call or is gone, a daemon that has
// ended. The call of a rank that takes no result returns when its part is on its way (decision 71).
// One thread at a time.
#pragma once

#include <memory>
#include <optional>

#include "comm/failure/failure_state.hpp"
#include "comm/members.hpp"
#include "comm/nic/nic_order.hpp"
#include "comm/nic/nic_path.hpp"
#include "comm/nic/nic_peers.hpp"
#include "comm/operations/operation_queue.hpp"
#include "engine/engine.hpp"
#include "wait/core_contention.hpp"

namespace unisono::comm {

class NicEngine final : public engine::Engine {
 public:
  // The references outlive it.
  NicEngine(const Members& members, const Segment& segment, OperationQueue& queue,
            FailureState& failures, std::unique_ptr<NicPath> path);
  ~NicEngine() override;

  void start(engine::Operation& operation, const plan::Plan& plan,
             const engine::Launch& launch) override;
  engine::Outcome step(engine::Operation& operation) override;
  base::Error error(const engine::Operation& operation) const override;
  void cancel(engine::Operation& operation) override;
  int awaited(const engine::Operation& operation) const override;
  bool completed_by(const engine::Operation& operation, int rank) const override;
  engine::Stall describe_stall(const engine::Operation& operation) const override;
  bool sleeps_at_once(std::int64_t now_ns) const override;
  engine::SleepTarget prepare_sleep(engine::Operation& operation, std::int64_t limit_ns) override;
  void after_sleep(engine::Operation& operation, bool was_woken) override;

  // While the first operation takes long: requests packets that may be lost, and now and then looks
  // for the reason why it does not end.
  void examine();
  // A member is gone: fails the operation that needs it. True if that is done, or is in progress.
  bool examine_members();
  // Lets members on this host and on others see how far this rank is.
  void publish() { peers_.publish(progress()); }
  // Before the communicator ends (nic_leave.hpp).
  void leave();

 private:
  friend class NicLeave;
  void post();
  engine::Outcome finish(engine::Operation& operation);
  void publish_given(engine::NicOperation& own);
  engine::Outcome fail(const engine::Operation& operation, const base::Error& why);
  engine::Outcome detach(engine::Operation& operation);
  void collect();
  void report_error();
  bool disarm(engine::Operation& operation);
  base::Error difference(const engine::Operation& operation, int other) const;
  NicProgress progress() const;
  bool is_owed_by(const NicPath::Neighbour& next, const NicProgress& own,
                  const std::optional<NicProgress>& other) const;
  void await_silence();
  void examine_progress(engine::Operation& operation);
  void ask_for_failure();

  const Members& members_;
  OperationQueue& queue_;
  FailureState& failures_;
  wait::CoreContention& contention_;
  const std::unique_ptr<NicPath> path_;
  NicPeers peers_;
  NicOrder order_;                    // the first is posted, or waits for an acknowledgement
  std::optional<base::Error> error_;  // of the first operation that failed, and ...
  std::uint64_t error_from_ = 0;      // ... its index
};

// The last call of another rank, by index, if this rank's was another one there. None: it was the
// same, or is not known. The root of a broadcast may be ahead of other ranks (decision 78).
std::optional<std::uint64_t> find_different_call(OperationQueue& own, const NicProgress& other);
// Ends the communicator from that call on.
void fail_at_difference(const Members& members, FailureState& failures, std::uint64_t index,
                        int other);

}  // namespace unisono::comm
