// SPDX-License-Identifier: BSD-3-Clause
#include "plan/bind/receive_layout.hpp"

#include <algorithm>

namespace unisono::plan {
namespace {

using schedule::Memory;
using schedule::Op;
using schedule::OpId;
using schedule::OpKind;
using schedule::Range;
using schedule::Schedule;
using schedule::SlotId;
using schedule::Target;

constexpr std::int64_t kAdvertisementBytes = 8;
constexpr std::int64_t kBounceBytes = 32 * 1024;  // stays in a core's cache
constexpr int kFewBounces = 2;                    // more of them share the space of these

std::int64_t round_to_line(std::int64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

std::int64_t least_pulled(const BindOptions& options) {
  return std::max<std::int64_t>(
      1, (options.pull_from + options.element_bytes - 1) / options.element_bytes);
}

}  // namespace

ReceiveLayout::ReceiveLayout(std::span<const Schedule> set, const BindOptions& options)
    : set_(set),
      options_(options),
      geometry_(options.geometry),
      helpable_(set.size()),
      ranks_(set.size()) {
  if (options.pull_from > 0) pulls_ = Pulls(set, least_pulled(options));
  std::vector<char> needed;
  for (std::size_t r = 0; options.helping && r < set.size(); ++r) {
    helpable_[r] = schedule::helpable_steps(set[r], needed);
  }
  place();
}

void ReceiveLayout::place_in(const ReceiveGeometry& geometry) {
  if (geometry == geometry_) return;
  geometry_ = geometry;
  place();
}

void ReceiveLayout::place() {
  const int ranks = static_cast<int>(set_.size());
  for (int r = 0; r < ranks; ++r) {
    RankLayout& layout = at(r);
    layout.slots.assign(schedule_of(r).slots.size(), {});
    layout.outboxes.clear();
    layout.lines = layout.data_bytes = 0;
    layout.multicast_bytes = -1;
  }
  if (options_.staged_multicast || !options_.group.empty()) {
    for (int r = 0; r < ranks; ++r) place_outboxes(r);
  }
  if (gathers_at_senders()) {
    for (int r = 0; r < ranks; ++r) place_long_sends(r);
  }
  for (int r = 0; r < ranks; ++r) place_rank(r);
  if (!pulls_.any()) return;
  for (int r = 0; r < ranks; ++r) place_taken(r);
}

// Sent to all other hosts if most of the group receives it; the other members ignore it.
bool ReceiveLayout::is_staged(int rank, const Op& op) const {
  const auto hears = [this](int r) {
    return !options_.group.empty() && options_.group[static_cast<std::size_t>(r)];
  };
  int remote = 0;
  for (const Target& target : schedule_of(rank).targets_of(op)) {
    if (options_.hosts.share(rank, target.peer)) continue;
    if (!hears(target.peer)) return false;
    ++remote;
  }
  const bool has_local = op.target_count > remote;
  if (has_local && !options_.staged_multicast) return false;
  if (remote == 0) return true;
  const auto others = std::ranges::count(options_.group, true) - 1;
  return hears(rank) && remote > 1 && 2 * remote >= others;
}

bool ReceiveLayout::only_owners_read() const {
  if (pulls_.any()) return false;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const auto is_with_owner = [&](const MessagePlace& place) {
      return place.flag / geometry_.rank_stride() == static_cast<std::int64_t>(r);
    };
    if (!std::ranges::all_of(ranks_[r].slots, is_with_owner)) return false;
  }
  return true;
}

std::int64_t ReceiveLayout::bounce_count(int rank) const {
  const std::int64_t share =
      kBounceBytes * kFewBounces / std::max(kFewBounces, at(rank).bounces) / kLineBytes;
  return std::max<std::int64_t>(1, share * kLineBytes / options_.element_bytes);
}

std::int64_t ReceiveLayout::bounce(int rank, int operand) const {
  return at(rank).bounce + operand * round_to_line(bytes(bounce_count(rank)));
}

ReceiveNeed ReceiveLayout::need() const {
  ReceiveNeed need;
  for (const RankLayout& layout : ranks_) {
    need.lines = std::max(need.lines, layout.lines);
    need.data_bytes = std::max(need.data_bytes, layout.data_bytes);
    need.multicast_bytes = std::max(need.multicast_bytes, layout.multicast_bytes);
  }
  return need;
}

std::int64_t ReceiveLayout::take_data(int rank, std::int64_t bytes) {
  const std::int64_t offset =
      rank * geometry_.rank_stride() + geometry_.lines * kLineBytes + at(rank).data_bytes;
  at(rank).data_bytes += round_to_line(bytes);
  return offset;
}

// Payload and flag in one line where they fit, so that one transfer carries both.
MessagePlace ReceiveLayout::take_message(int rank, std::int64_t bytes) {
  const std::int64_t line = rank * geometry_.rank_stride() + at(rank).lines * kLineBytes;
  ++at(rank).lines;
  return {.payload = bytes <= kLinePayload ? line : take_data(rank, bytes),
          .flag = line + kLinePayload};
}

// A multicast is written once, in the sender's buffers, where all its receivers read it.
void ReceiveLayout::place_outboxes(int rank) {
  const Schedule& schedule = schedule_of(rank);
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    if (op.kind != OpKind::multicast || !is_staged(rank, op)) continue;
    const bool pulled = pulls_.sent(rank, static_cast<OpId>(i));
    const MessagePlace place =
        take_message(rank, pulled ? kAdvertisementBytes : bytes(op.left.count));
    if (at(rank).outboxes.empty()) at(rank).outboxes.resize(schedule.ops.size());
    at(rank).outboxes[i] = place;
    for (const Target& target : schedule.targets_of(op)) {
      at(target.peer).slots[static_cast<std::size_t>(target.slot)] = place;
      if (options_.hosts.share(rank, target.peer)) continue;
      at(rank).multicast_bytes = at(rank).data_bytes;  // other hosts have a copy of the outbox
    }
  }
}

// The root of a gather receives all blocks, and no other rank more than a part of them. So its
// buffer would limit the parts of long blocks, while those of others are empty. Two ranks are
// alike.
bool ReceiveLayout::gathers_at_senders() const {
  const schedule::Shape& shape = schedule_of(0).shape;
  return shape.collective == schedule::Collective::gather && shape.ranks > 2 &&
         options_.staged_multicast && !options_.hosts.given();
}

// In the sender's buffers, where the receiver reads them, as it reads a multicast. Flags of short
// messages stay together, in the buffers of the rank that waits for them.
void ReceiveLayout::place_long_sends(int rank) {
  const Schedule& schedule = schedule_of(rank);
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    if (op.kind != OpKind::send || bytes(op.left.count) <= kLinePayload) continue;
    if (pulls_.sent(rank, static_cast<OpId>(i))) continue;
    const Target& target = schedule.targets_of(op).front();
    at(target.peer).slots[static_cast<std::size_t>(target.slot)] =
        take_message(rank, bytes(op.left.count));
  }
}

void ReceiveLayout::place_rank(int rank) {
  RankLayout& layout = at(rank);
  const Schedule& schedule = schedule_of(rank);
  for (std::size_t s = 0; s < schedule.slots.size(); ++s) {
    if (layout.slots[s].flag >= 0) continue;  // in its sender's outbox
    const bool pulled = pulls_.received(rank, static_cast<SlotId>(s));
    layout.slots[s] =
        take_message(rank, pulled ? kAdvertisementBytes : bytes(schedule.slots[s].count));
  }
  layout.bounces = most_pulled(rank);
  if (layout.bounces > 0) {
    layout.bounce = take_data(rank, 0);
    for (int i = 0; i < layout.bounces; ++i) take_data(rank, bytes(bounce_count(rank)));
  }
  layout.scratch = take_data(rank, bytes(schedule.scratch_count));
  if (helpable(rank).stages_input) {
    layout.staged_input = take_data(rank, bytes(schedule::input_count(schedule.shape, rank)));
  }
  if (helpable(rank).stages_output) {
    layout.staged_output = take_data(rank, bytes(schedule::output_count(schedule.shape, rank)));
  }
}

void ReceiveLayout::place_taken(int rank) {
  const Schedule& schedule = schedule_of(rank);
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    if (!pulls_.sent(rank, static_cast<OpId>(i))) continue;
    for (const Target& target : schedule.targets_of(schedule.ops[i])) {
      at(target.peer).slots[static_cast<std::size_t>(target.slot)].taken =
          take_message(rank, 0).flag;
    }
  }
}

// The most pulled operands of an op that combines.
int ReceiveLayout::most_pulled(int rank) const {
  int most = 0;
  if (!pulls_.any()) return most;
  for (const Op& op : schedule_of(rank).ops) {
    if (op.kind != OpKind::reduce && op.kind != OpKind::sum) continue;
    int pulled = 0;
    schedule::for_each_read(schedule_of(rank), op, [&](const Range& range) {
      if (range.memory == Memory::slot && pulls_.received(rank, range.slot)) ++pulled;
    });
    most = std::max(most, pulled);
  }
  return most;
}

}  // namespace unisono::plan
