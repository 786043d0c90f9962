// SPDX-License-Identifier: BSD-3-Clause
// CallCheck: detects that the ranks of a communicator have made different calls, and names ranks
// and calls. It compares the call records in this host's memory, and asks members on other hosts
// for theirs (remote_calls.hpp). One thread at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/failure/failure_state.hpp"
#include "comm/members.hpp"
#include "comm/operations/operation_queue.hpp"
#include "engine/call_record.hpp"

namespace unisono::comm {

class CallCheck {
 public:
  // These outlive it.
  CallCheck(const Members& members, const Segment& segment, OperationQueue& queue,
            FailureState& failures)
      : members_(members), segment_(segment), queue_(queue), failures_(failures) {}

  // An operation cannot go on: fails it with the known details. False while members on other hosts
  // are asked for their calls; other operations may go on meanwhile.
  bool fail(const Pending& pending, engine::Outcome outcome);
  // Fails the first operation that another member has called otherwise. For waits that last.
  void examine();

 private:
  // The first operation, of those whose records are still there, that a member called differently.
  struct Difference {
    int other;
    engine::RecordCopy own, theirs;
  };
  std::optional<Difference> find_difference() const;
  // The first differing digest of the calls so far, or one after it. The member is of this host, or
  // the one that has answered last.
  struct Digest {
    int member;
    std::uint64_t index;
  };
  std::optional<Digest> find_digest() const;
  std::vector<engine::RecordCopy> records_of(int rank) const;
  void examine_remote_calls();
  bool search_difference(const Pending& pending);
  void tell_known_difference();
  void fail_mismatch(const Pending& pending);
  void fail_wrong_length(const Pending& pending);
  void fail_unreadable(const Pending& pending);
  void tell_digest(const Digest& digest);
  void tell_other_call(std::uint64_t index, const std::string& call, int other);
  void tell_difference(const Difference& difference);

  const Members& members_;
  const Segment& segment_;
  OperationQueue& queue_;
  FailureState& failures_;
  // A search for a call that differs is over when the operation has ended that began it.
  bool is_searching() const;
  int searched_ = 0;                // remote members asked so far
  std::uint64_t searched_for_ = 0;  // the operation's index
};

}  // namespace unisono::comm
