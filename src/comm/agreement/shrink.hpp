// SPDX-License-Identifier: BSD-3-Clause
// Shrink: a communicator goes on without its lost members. The living ones agree on a list
// (agreement.hpp); the one that proposed it has reserved the new segment. Then each member of the
// list reports whether it has the memory for it (consent.hpp): all go on, or none. One thread at a
// time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "comm/agreement/agreement.hpp"
#include "comm/agreement/consent.hpp"
#include "comm/early_end.hpp"
#include "comm/failure/ends.hpp"
#include "comm/members.hpp"
#include "comm/reservations.hpp"
#include "comm/segment.hpp"

namespace unisono::comm {

class Shrink {
 public:
  // The agreement of the members that go on. With an error, they own a communicator that has to
  // fail because of it.
  struct Outcome {
    std::vector<int> members;  // by their numbers in the old communicator, ascending
    Grant grant;
    std::vector<int> absent;  // members of the new communicator that never had its memory
    std::optional<base::Error> failure;
  };

  // These outlive it.
  Shrink(const Members& members, const Segment& segment, const Ends& ends);

  // Informs the others that this rank takes part. They wait for every member that lives.
  base::Status join();
  // One turn. Empty: not yet. An error ends it for this rank. Then after_error() returns a
  // communicator if this rank owns one whose failure the others must learn.
  base::Result<std::optional<Outcome>> step();
  std::optional<Outcome> after_error() { return std::exchange(left_behind_, std::nullopt); }

  // Whether it has ended with a decision, so that the communicator has been shrunk.
  bool is_over() const { return is_over_; }
  // For a call that ended before that; another call goes on.
  base::Error incomplete(const EarlyEnd& end) const;
  // Once more at the communicator's end: what members had reserved that have died since.
  void give_back_unused() const;

 private:
  base::Error error(const base::Error& why) const;
  std::vector<std::byte> make_grant(const std::vector<int>& members);
  base::Error refused(int by);
  base::Error excluded();
  base::Status take(Agreement::Decision decision);
  base::Result<Outcome> follow();
  base::Error end_without(std::span<const int> missing);
  Grant grant() const;
  int place_of(int member) const;

  const Members& members_;
  const Ends& ends_;
  Reservations reservations_;
  Consent consent_;
  Agreement agreement_;
  std::optional<Agreement::Decision> decision_;
  base::Status memory_ready_ = base::success();  // for the new communicator
  std::optional<Outcome> left_behind_;
  bool is_over_ = false;
};

}  // namespace unisono::comm
