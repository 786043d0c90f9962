// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/group/multicast_sender.hpp"

#include <algorithm>

namespace unisono::reliable {

void MulticastSender::put(wire::Header header, std::span<const std::byte> payload,
                          std::int64_t now_ns) {
  header.sequence = next_++;
  if (backlog_.empty() && has_room()) {
    send_out(header, payload, now_ns);
  } else {
    ++context_.counts.waited;
    backlog_.push_back({header, {payload.begin(), payload.end()}});
  }
  if (unsent_ - lacking_ >= context_.options.window / 2) ask(now_ns);
}

void MulticastSender::send_out(const wire::Header& header, std::span<const std::byte> payload,
                               std::int64_t now_ns) {
  ++unsent_;
  sent_.keep(header, payload, now_ns);
  ++context_.counts.packets;
  context_.packets.send(transport::kGroup, context_.filter.seal(header, payload), payload);
  context_.counts.passed_on += unreached_.size();
  context_.send_by_unicast(unreached_, header, payload);
}

// Notes what a request or an answer says of its sender.
void MulticastSender::note_child(const wire::Header& header) {
  const auto child = static_cast<int>(header.sender);
  if ((header.position & kUnreached) != 0 && std::ranges::count(unreached_, child) == 0) {
    unreached_.push_back(child);
  }
}

// A request says that all before its place has come to its sender. If no rank is below the sender,
// that is an answer.
bool MulticastSender::take_request(const wire::Header& request, std::int64_t now_ns) {
  const auto child = static_cast<int>(request.sender);
  note_child(request);
  if (request.hop == 0 && context_.options.tree.is_leaf(context_.rank(), child) && ask_.runs()) {
    answers_.note(child, {.value = request.place});
    look_at_answers(now_ns);
  }
  bool has_payload = false;
  for (std::uint64_t i = 0; i < kMaskNumbers; ++i) {
    if ((request.value >> i & 1) == 0) continue;
    if (KeptPackets::Packet* const packet = sent_.find(request.place + i)) {
      context_.repair(sent_, *packet, child, now_ns);
      has_payload |= packet->bytes != 0;
    }
  }
  return has_payload;
}

void MulticastSender::take_answer(const wire::Header& answer, std::int64_t now_ns) {
  note_child(answer);
  if (answer.place != query_) return;
  answers_.note(static_cast<int>(answer.sender),
                {.value = answer.value, .passes_over = (answer.position & kPassesOver) != 0});
  look_at_answers(now_ns);
}

void MulticastSender::look_at_answers(std::int64_t now_ns) {
  const auto worst = answers_.worst(context_.children(context_.rank()), {.value = unsent_});
  if (worst) note_reached(*worst, now_ns);
}

void MulticastSender::note_reached(const Answers::Answer& worst, std::int64_t now_ns) {
  const std::uint64_t number = worst.value;
  if (wire::is_before(unsent_, number)) return;  // never sent: not to be believed
  // Without news the timer goes on, so that the same question comes less and less often.
  if (!wire::is_before(lacking_, number)) return;
  if (worst.passes_over) fail(number);
  lacking_ = number;
  ask_.stop();
  while (!backlog_.empty() && has_room()) {
    send_out(backlog_.front().header, backlog_.front().payload, now_ns);
    backlog_.pop_front();
  }
  if (unsent_ - lacking_ >= context_.options.window / 2) ask(now_ns);
}

// Some lost member may lack those before `until`, from the first that is not known to have come to
// all.
void MulticastSender::fail(std::uint64_t until) {
  failed_.add(lacking_, until);
  context_.counts.failed = failed_.count();
}

Acknowledgement MulticastSender::acknowledgement(std::uint64_t first, std::uint64_t last) const {
  if (failed_.has_any(first, last)) return Acknowledgement::failed;
  return wire::is_before(last, lacking_) ? Acknowledgement::all_have_all : Acknowledgement::not_yet;
}

// Later puts are for the others only. Earlier answers may not know of the loss, so the sender asks
// an open question again.
void MulticastSender::note_departure(Departure how, std::int64_t now_ns) {
  if (how == Departure::lost) fail(next_);
  if (!ask_.runs()) return;
  if (how == Departure::lost && !context_.options.tree.is_leaf(context_.rank(), context_.rank())) {
    send_query();
  }
  look_at_answers(now_ns);
}

void MulticastSender::ask(std::int64_t now_ns) {
  if (ask_.runs() || is_settled()) return;
  if (context_.options.tree.is_leaf(context_.rank(), context_.rank())) {
    return note_reached({.value = unsent_}, now_ns);
  }
  send_query();
  ask_.start(now_ns, context_.options.ask, context_.prng);
}

// A new question each time, so that late answers to an old one are told apart.
void MulticastSender::send_query() {
  ++query_;
  ++context_.counts.queries;
  answers_.clear();
  const wire::Header header = query_header();
  context_.packets.send(transport::kGroup, context_.filter.seal(header, {}), {});
  context_.counts.passed_on += unreached_.size();
  context_.send_by_unicast(unreached_, header, {});
}

wire::Header MulticastSender::query_header() const {
  wire::Header header = context_.filter.header(wire::Kind::query, wire::kToGroup, query_);
  header.place = 0;  // this rank's multicasts
  header.flag = context_.options.tree.lost_set();
  header.value = unsent_;  // so a rank that has lost the last packet learns of it
  return header;
}

// The question, or an answer to it, may be lost, or not be carried by multicast at all. A rank
// that has answered need not do so again: among many ranks some answer is lost each time.
void MulticastSender::ask_again() {
  const std::vector<int> silent = answers_.missing(context_.children(context_.rank()));
  if (silent.empty()) return send_query();  // all have answered, and one of them lacked something
  context_.counts.asked_again += silent.size();
  context_.send_by_unicast(silent, query_header(), {});
}

void MulticastSender::look_at_timer(std::int64_t now_ns) {
  if (!ask_.is_due(now_ns)) return;
  if (is_settled()) {
    ask_.stop();
    return;
  }
  ask_again();
  ask_.again(now_ns, context_.options.ask, context_.prng);
}

}  // namespace unisono::reliable
