// SPDX-License-Identifier: BSD-3-Clause
// MulticastSender: the multicasts of this rank. It keeps them until all ranks have them, and
// repeats them to its children in the repair tree. When it runs out of room, or has to know, it
// asks the group how far all are; each child answers for itself and all below it. One thread at a
// time.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "reliable/group/answers.hpp"
#include "reliable/group/group_context.hpp"
#include "reliable/link/retry.hpp"

namespace unisono::reliable {

class MulticastSender {
 public:
  // `context` outlives it.
  explicit MulticastSender(GroupContext& context)
      : context_(context), sent_(context.options.window, context.options.payload_bytes) {}

  // One packet of a message to all; `header` has place, flag, value and position.
  void put(wire::Header header, std::span<const std::byte> payload, std::int64_t now_ns);
  // Asks how far all are, until all have what this rank has sent.
  void ask(std::int64_t now_ns);
  bool is_settled() const { return lacking_ == next_; }
  // The number of the last packet that was put; 0: there is none.
  std::uint64_t last() const { return next_ - 1; }
  // The first one that some living member may lack.
  std::uint64_t lacking() const { return lacking_; }
  // Tells whether all members have the packets [first, last].
  Acknowledgement acknowledgement(std::uint64_t first, std::uint64_t last) const;

  // A child's request. Returns whether it had packets with a payload to repeat.
  bool take_request(const wire::Header& request, std::int64_t now_ns);
  // A child's answer to a question.
  void take_answer(const wire::Header& answer, std::int64_t now_ns);
  // A member has gone: children of the repair tree have changed.
  void note_departure(Departure how, std::int64_t now_ns);

  // Asks again if it is time.
  void look_at_timer(std::int64_t now_ns);
  const RetryTimer& timer() const { return ask_; }

 private:
  // A packet that has its number and waits for room in the window.
  struct Waiting {
    wire::Header header;
    std::vector<std::byte> payload;
  };

  bool has_room() const { return unsent_ - lacking_ < context_.options.window; }
  void send_out(const wire::Header& header, std::span<const std::byte> payload,
                std::int64_t now_ns);
  void note_child(const wire::Header& header);
  void look_at_answers(std::int64_t now_ns);
  void note_reached(const Answers::Answer& worst, std::int64_t now_ns);
  void fail(std::uint64_t until);
  wire::Header query_header() const;
  void send_query();
  void ask_again();

  GroupContext& context_;
  std::uint64_t next_ = 1;     // number of the next packet
  std::uint64_t unsent_ = 1;   // the first in the backlog
  std::uint64_t lacking_ = 1;  // the first that some rank may lack
  KeptPackets sent_;
  std::deque<Waiting> backlog_;
  std::uint64_t query_ = 0;
  RetryTimer ask_;
  Answers answers_;
  FailedNumbers failed_;
  std::vector<int> unreached_;  // children that multicast does not reach
};

}  // namespace unisono::reliable
