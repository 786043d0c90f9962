// SPDX-License-Identifier: BSD-3-Clause
// FailureState: whether a communicator can go on, and if not, from which operation on and why. A
// rank that finds a failure informs all members, and each member adopts it. All failures of a call
// that the others would wait for go through refuse(): those before its operation starts, and thrown
// exceptions at any time. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "comm/failure/failure_updates.hpp"
#include "comm/members.hpp"
#include "comm/operations/operation_queue.hpp"
#include "job/failure_record.hpp"

namespace unisono::comm {

// Whether a wait has to end, as the application says; function may be null.
struct Interrupt {
  static constexpr int kLate = 2;  // as UNISONO_INTERRUPT_LATE; api/ asserts that they agree

  int (*function)(void*) = nullptr;
  void* user = nullptr;
};

class FailureState {
 public:
  // These outlive it.
  FailureState(const Members& members, const Segment& segment, OperationQueue& queue);

  // The failure that this rank has adopted.
  bool has_failed() const { return failure_.has_value(); }
  const job::Failure& failure() const { return *failure_; }
  // So many failures have been adopted, each of an earlier operation than the one before.
  int count() const { return count_; }
  bool has_failed_by(std::uint64_t index) const { return failure_ && failure_->index <= index; }
  // Whether the next operation fails. Those before the failed one are started still: others may
  // have started them, and would wait.
  bool starts_no_more() const { return has_failed_by(queue_.next_index()); }
  // Whether some member has reported one.
  bool is_known() const { return updates_.earliest().has_value(); }

  // Ends the communicator for all, from operation `index` on, and tells why. `rank` is the member
  // that is the cause; -1: not a single one, or unknown.
  void fail_all(base::Code code, const std::string& message, std::uint64_t index, int rank = -1);
  // The operations that end with a refused call. After a thrown exception all do: an operation that
  // was started earlier may have thrown it.
  enum class Ending : std::uint8_t { from_this_call_on, all };
  // For a call that this rank cannot make and the others would wait for. Ends the communicator for
  // all members, and returns the error for the caller. `what` begins with the function's name.
  base::Error refuse(base::Code code, const std::string& what,
                     Ending ending = Ending::from_this_call_on);
  // Checks for a failure reported by another member, and adopts it.
  void adopt();
  // Asks the application of a waiting rank; if it says so, the operations in progress are
  // cancelled. True: they are late instead, and the caller fails them.
  void set_interrupt(const Interrupt& interrupt) { interrupt_ = interrupt; }
  bool has_interrupt() const { return interrupt_.function != nullptr; }
  bool ask_for_interrupt();
  // The answer of the application, which has an interrupt, in a wait for something else.
  int ask_application() const { return interrupt_.function(interrupt_.user); }
  // This rank ends the communicator now. Others may still be reading its caller's memory, in
  // operations that have not ended: they are told.
  void end_lending();
  // Member `rank` lives, and has ended the communicator, so `what` cannot complete.
  void fail_without(int rank, const std::string& what, std::uint64_t index);

  // The error for the caller; from then on it counts as reported.
  base::Error tell();
  void count_as_reported() { failure_reported_ = true; }
  bool is_reported() const { return failure_reported_; }

  // Whether a rank is just writing why it fails, so that a member which has left may have left
  // because of that.
  bool is_being_reported() const;
  // Whether member `rank` of another host may have left because of a failure whose update is still
  // under way. True for some time from the first question on.
  bool may_have_known(int rank);

  FailureUpdates& updates() { return updates_; }

 private:
  void fail_pending(const job::Failure& failure);

  const Members& members_;
  job::FailureRecord& record_;
  OperationQueue& queue_;
  FailureUpdates updates_;
  std::optional<job::Failure> failure_;
  Interrupt interrupt_;
  int count_ = 0;
  bool failure_reported_ = false;
  std::int64_t left_since_ns_ = 0;  // since when a member that lacks its part has left; 0: none
};

}  // namespace unisono::comm
