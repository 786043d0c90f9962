// SPDX-License-Identifier: BSD-3-Clause
// Watchdog: looks for reasons why a communicator's operations do not end. These are a failure that
// another member has reported, a member that is gone or has ended the communicator, a stopped
// process, calls that differ, and a deadline. A waiting rank asks it in every turn; that costs two
// loads while nothing is wrong. One thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "comm/failure/ends.hpp"
#include "comm/failure/failure_state.hpp"
#include "comm/members.hpp"
#include "comm/operations/operation_queue.hpp"
#include "comm/watch/call_check.hpp"

namespace unisono::comm {

class NicEngine;

// Whether a member still takes part. A member that has left ended its part in order.
struct MemberState {
  enum class Kind : std::uint8_t { present, left, lost };
  Kind kind = Kind::present;
  std::string why;  // empty: it is present
};

class Watchdog {
 public:
  // These outlive it.
  Watchdog(const Members& members, OperationQueue& queue, FailureState& failures, CallCheck& calls,
           const Ends& ends);
  // From now on the operations of that engine are looked after, too; it outlives the watchdog's
  // use.
  void use_nic(NicEngine& nic) { nic_ = &nic; }
  void forget_nic() { nic_ = nullptr; }

  // In a turn of a wait; `thoroughly` when it has lasted.
  void examine(bool thoroughly);
  // After a sleep: thoroughly if it is time. A rank that is woken in every operation has no time
  // for a thorough look in each.
  void examine_after_sleep();
  // For a rank that does not sleep itself: one that polls, and the agent.
  void examine_now_and_then();
  // Fails the operation of which a lost host may lack a multicast of this rank.
  void examine_multicasts();
  // Fails the oldest operation, because the application's deadline has passed.
  void fail_late();
  // How a member is, as far as is known now; looks for its loss, and does not wait.
  MemberState state_of(int member);
  // Whether an event since the last check may end a pending operation.
  bool has_new_event() const { return members_.job().events().count() != events_seen_; }

 private:
  void handle_events();
  void ask_for_failure();
  void examine_members();
  bool examine_member(const Pending& pending, int rank);
  bool examine_ends();
  void examine_stops();
  void examine_silence();
  void examine_deadline();
  std::string missing(const engine::Operation& operation) const;

  const Members& members_;
  OperationQueue& queue_;
  FailureState& failures_;
  CallCheck& calls_;
  const Ends& ends_;
  NicEngine* nic_ = nullptr;
  std::uint32_t events_seen_;
  bool someone_gone_ = false;
  std::int64_t examined_ns_ = 0;  // the last thorough look
  std::int64_t pause_ns_;         // until the next one
};

}  // namespace unisono::comm
