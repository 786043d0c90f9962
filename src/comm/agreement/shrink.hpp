// SPDX-License-Identifier: BSD-3-Clause
// Shrink: how a communicator goes on without the members that are lost. Those that live agree on a
// list (agreement.hpp); the one that has proposed it has reserved the new segment. Then each member
// of the list says whether it has the memory for it (consent.hpp): all go on, or none. One thread
// at a time.
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
#include "comm/failure/ends.hpp"
#include "comm/members.hpp"
#include "comm/segment.hpp"

namespace unisono::comm {

class Shrink {
 public:
  // What the members that go on have agreed on. With an error, they own a communicator that has to
  // fail because of it.
  struct Outcome {
    std::vector<int> members;  // of the old communicator, ascending
    Grant grant;
    std::vector<int> absent;  // of the new communicator: members that never had its memory
    std::optional<base::Error> failure;
  };

  // These outlive it.
  Shrink(const Members& members, const Segment& segment, const Ends& ends);

  // Tells the others that this rank takes part. They wait for every member that lives.
  base::Status join();
  // One turn. Empty: not yet. An error ends it for this rank; then after_error() says whether it
  // owns a communicator that the others have to be told of.
  base::Result<std::optional<Outcome>> step();
  std::optional<Outcome> after_error() { return std::exchange(left_behind_, std::nullopt); }

  // Whether it has come to an end, so that the communicator has been shrunk.
  bool is_over() const { return is_over_; }
  base::Error late(std::int64_t limit_ns) const;

 private:
  base::Error error(const base::Error& why) const;
  std::vector<std::byte> offer_segment(const std::vector<int>& members);
  base::Error refused(int by);
  base::Error excluded();
  base::Status take(Agreement::Decision decision);
  base::Result<Outcome> follow();
  base::Error end_without(std::span<const int> missing);
  Grant grant() const;
  int place_of(int member) const;

  const Members& members_;
  const Ends& ends_;
  Consent consent_;
  Agreement agreement_;
  std::optional<Agreement::Decision> decision_;
  base::Status memory_ready_ = base::success();  // for the new communicator
  Grant offered_;                                // which this rank has reserved for it
  std::optional<Outcome> left_behind_;
  bool is_over_ = false;
};

}  // namespace unisono::comm
