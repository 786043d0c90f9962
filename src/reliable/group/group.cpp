// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/group/group.hpp"

#include "base/check.hpp"

namespace unisono::reliable {

Group::Group(const GroupOptions& options, const wire::PacketFilter& filter,
             const GroupPackets& packets, std::uint64_t seed)
    : context_{.options = options, .filter = filter, .packets = packets, .prng = base::Prng(seed)},
      sender_(context_),
      receiver_(context_) {
  UNISONO_CHECK(options.window >= 2 && options.window <= kWindow, "window of a group");
}

bool Group::take_request(const wire::Header& request, std::int64_t now_ns) {
  const bool own = static_cast<int>(request.origin) == context_.rank();
  return own ? sender_.take_request(request, now_ns) : receiver_.take_request(request, now_ns);
}

void Group::take_answer(const wire::Header& answer, std::int64_t now_ns) {
  if (static_cast<int>(answer.origin) == context_.rank()) {
    sender_.take_answer(answer, now_ns);
  } else {
    receiver_.take_answer(answer);
  }
}

bool Group::is_child(int origin, int sender) const {
  return has(origin) && has(sender) && has(context_.rank()) && origin != sender &&
         context_.options.tree.parent(origin, sender) == context_.rank();
}

void Group::forget(int rank, Departure how, std::int64_t now_ns) {
  if (context_.options.tree.forget(rank, how)) sender_.note_departure(how, now_ns);
}

void Group::look_at_timers(std::int64_t now_ns) {
  receiver_.look_at_timers(now_ns);
  sender_.look_at_timer(now_ns);
}

std::int64_t Group::next_deadline_ns() const {
  const std::int64_t soonest = receiver_.next_deadline_ns();
  const RetryTimer& ask = sender_.timer();
  return ask.runs() ? std::min(soonest, ask.deadline_ns()) : soonest;
}

}  // namespace unisono::reliable
