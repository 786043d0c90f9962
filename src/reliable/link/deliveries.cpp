// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/link/deliveries.hpp"

namespace unisono::reliable {
namespace {

// With so many packets under way, a rank asks about them before the window is full.
constexpr std::uint64_t kAskFrom = kWindow / 2;

}  // namespace

void Deliveries::submit(Link& link, int target, const wire::Header& header,
                        std::span<const std::byte> payload) {
  if (link.sending.backlog.empty() && keep(link, target, header, payload)) {
    if (link.sending.under_way() == kAskFrom) ask(link, target);
    return;
  }
  if (link.ended) return submit_to_ended(link, target, header, payload);
  ++context_.counts.waited;
  if (link.sending.backlog.empty()) backlogged_.push_back(target);
  link.sending.backlog.push_back({header, {payload.begin(), payload.end()}});
  ask(link, target);
}

// A peer that was taken for lost may live, and has to learn of that. But it acknowledges nothing,
// so a backlog would have no end: packets before this one give way. Where packets to other ranks
// fill the pool, it leaves once and is not kept.
void Deliveries::submit_to_ended(Link& link, int target, const wire::Header& header,
                                 std::span<const std::byte> payload) {
  acknowledge(link, link.sending.unsent());
  if (keep(link, target, header, payload)) return;
  outbox_.send(target, context_.filter.seal(header, payload), payload);
  ++context_.counts.abandoned;
  link.sending.skip_unsent();
}

// False if there is no room for it.
bool Deliveries::keep(Link& link, int target, const wire::Header& header,
                      std::span<const std::byte> payload) {
  if (!link.sending.has_room() || !make_room()) return false;
  link.sending.note_sent(outbox_.keep(target, header, payload));
  return true;
}

// Packets that only forgotten peers lack give way.
bool Deliveries::make_room() {
  if (outbox_.has_room()) return true;
  outbox_.flush();  // once they leave all the same: they tell those ranks what others need
  links_.for_each([this](Link& link, int) {
    if (link.ended) acknowledge(link, link.sending.unsent());
  });
  if (outbox_.has_room()) return true;
  // The pool is full of packets to other ranks.
  links_.for_each([this](Link& link, int rank) {
    if (link.sending.under_way() != 0) ask(link, rank);
  });
  return false;
}

// Room that one peer's packet frees may be what another peer's packets wait for.
void Deliveries::drain_backlogs() {
  std::erase_if(backlogged_, [this](int rank) {
    Link& link = links_.of(rank);
    auto& backlog = link.sending.backlog;
    while (!backlog.empty() && keep(link, rank, backlog.front().header, backlog.front().payload)) {
      backlog.pop_front();
    }
    if (!backlog.empty()) ask(link, rank);
    return backlog.empty();
  });
}

// Once; the timer asks again if no answer comes.
void Deliveries::ask(Link& link, int rank) {
  if (link.sending.ask.runs() || link.sending.under_way() == 0 || link.ended) return;
  control_.send_status(link, rank, true);
  link.sending.ask.start(context_.now_ns, context_.options.ask, context_.prng);
  links_.watch(link, rank);
}

void Deliveries::acknowledge(Link& link, std::uint64_t number) {
  const std::uint64_t before = link.sending.lacking();
  link.sending.acknowledge(number, [this](std::uint32_t index) { outbox_.release(index); });
  if (link.sending.lacking() != before) link.sending.ask.stop();
}

// All before `place` has come there.
bool Deliveries::take_request(Link& link, const wire::Header& request) {
  ++context_.counts.nacks_heard;
  if (request.hop == 0) acknowledge(link, request.place);
  bool has_payload = false;
  for (std::uint64_t i = 0; i < kMaskNumbers; ++i) {
    if ((request.value >> i & 1) == 0) continue;
    const std::uint32_t index = link.sending.kept(request.place + i);
    if (index == PacketPool::kNone) continue;
    const KeptPacket& packet = outbox_.kept(index);
    if (packet.queued) continue;
    if (context_.now_ns - packet.sent_ns < context_.options.linger_ns) {
      ++context_.counts.lingering;
      continue;
    }
    outbox_.repeat(index);
    has_payload |= packet.payload_bytes != 0;
  }
  return has_payload;
}

void Deliveries::confirm(int rank) {
  Link& link = links_.of(rank);
  if (link.sending.ask.runs() || link.ended) return;
  link.sending.ask.start(context_.now_ns, context_.options.ask, context_.prng);
  links_.watch(link, rank);
}

bool Deliveries::is_settled() const {
  bool settled = true;
  links_.for_each(
      [&settled](const Link& link, int) { settled &= link.ended || link.sending.is_settled(); });
  return settled;
}

void Deliveries::ask_unsettled() {
  links_.for_each([this](Link& link, int rank) {
    if (!link.ended && !link.sending.is_settled()) ask(link, rank);
  });
}

// The room of what it lacks is for others.
void Deliveries::forget(int rank) {
  Link& link = links_.of(rank);
  link.ended = true;
  do {
    acknowledge(link, link.sending.unsent());
    drain_backlogs();
  } while (link.sending.under_way() != 0);
  link.sending.ask.stop();
}

bool Deliveries::look_at_timer(Link& link, int rank) {
  RetryTimer& timer = link.sending.ask;
  if (!timer.is_due(context_.now_ns)) return timer.runs();
  if (link.sending.is_settled()) {
    timer.stop();
    return false;
  }
  control_.send_status(link, rank, true);
  timer.again(context_.now_ns, context_.options.ask, context_.prng);
  return true;
}

}  // namespace unisono::reliable
