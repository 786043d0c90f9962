// SPDX-License-Identifier: BSD-3-Clause
#include "plan/bind/bind_local.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "plan/bind/pulls.hpp"
#include "plan/bind/remote_partners.hpp"

namespace unisono::plan {
namespace {

using schedule::Memory;
using schedule::Op;
using schedule::OpId;
using schedule::OpKind;
using schedule::Range;
using schedule::Schedule;
using schedule::SlotId;

// A line holds payload or advertisement, then the length, then the flag.
constexpr std::int64_t kMostInLine = kLinePayload - 8;

class LocalBinder {
 public:
  LocalBinder(const Schedule& schedule, const LocalOptions& options)
      : schedule_(schedule), options_(options), shares_(BlockShares::of(options)) {
    UNISONO_CHECK(options.geometry.lines >= 2 * std::int64_t{options.geometry.ranks},
                  "a receive buffer with two lines a rank");
  }

  Program bind() {
    for (std::size_t i = 0; i < schedule_.ops.size(); ++i) {
      const Op& op = schedule_.ops[i];
      switch (op.kind) {
        case OpKind::send:
          bind_send(op, static_cast<OpId>(i));
          break;
        case OpKind::wait:
          bind_wait(op.slot);
          break;
        case OpKind::copy:
          bind_copy(op);
          break;
        case OpKind::multicast:
        case OpKind::reduce:
        case OpKind::sum:
          UNISONO_CHECK(false, "an op that needs others' counts");
      }
    }
    program_.staging_lasts =
        !staged_for_.empty() && program_.staging_bytes <= options_.lasting_up_to;
    if (!program_.staging_lasts) {
      for (const std::int32_t peer : staged_for_) bind_return(peer);
    }
    for (const std::int32_t peer : pulled_by_) bind_return(peer);
    program_.callers_memory_is_read =
        !pulled_by_.empty() || std::ranges::any_of(program_.steps, [](const Step& step) {
          return step.kind == StepKind::pull;
        });
    return std::move(program_);
  }

 private:
  std::int64_t bytes(std::int64_t count) const { return count * options_.element_bytes; }
  std::int64_t line(int rank, std::int64_t number) const {
    return rank * options_.geometry.rank_stride() + number * kLineBytes;
  }
  bool is_advertised(std::int64_t bytes) const {
    return bytes > std::max(shares_.long_bytes, kMostInLine);
  }
  // The position of a message of so many bytes for a slot; an advertised one has its advertisement
  // in the line.
  Place payload(int rank, SlotId slot, std::int64_t bytes) {
    if (bytes <= kMostInLine || is_advertised(bytes))
      return {Space::receive_buffers, line(rank, slot)};
    return share_of(rank, slot, bytes);
  }
  Place share_of(int rank, SlotId slot, std::int64_t bytes) {
    program_.data_bytes =
        std::max(program_.data_bytes, shares_.is_short(bytes)
                                          ? shares_.long_begin
                                          : shares_.place(options_.geometry.ranks - 1, bytes));
    return {Space::data, line(rank, options_.geometry.lines) + shares_.place(slot, bytes)};
  }
  std::int64_t flag(int rank, SlotId slot) const { return line(rank, slot) + kLinePayload; }
  // In the sender's buffers: its receiver no longer needs the source.
  std::int64_t taken_flag(int sender, int receiver) const {
    return line(sender, options_.geometry.ranks + receiver) + kLinePayload;
  }

  Step message_to(std::int32_t peer, StepKind kind) {
    Step step;
    step.kind = kind;
    step.peer = peer;
    step.first_woken = static_cast<std::int32_t>(program_.woken.size());
    step.woken_count = 1;
    program_.woken.push_back(peer);
    return step;
  }

  void bind_send(const Op& op, OpId id) {
    const schedule::Target target = schedule_.targets_of(op)[0];
    const std::int64_t length = bytes(op.left.count);
    const bool advertised = is_advertised(length);
    Step step = message_to(target.peer, advertised ? StepKind::advertise : StepKind::put);
    step.target = payload(target.peer, target.slot, length);
    step.left = locate(op.left);
    step.flag = flag(target.peer, target.slot);
    step.length_header = length;
    if (!advertised) {
      step.bytes = length;
    } else if (prefers_pull(length) && stays(schedule_, id, shared())) {
      pulled_by_.push_back(target.peer);
    } else {
      staged_for_.push_back(target.peer);
      step.left = stage(target.peer, op.left, length);
    }
    program_.steps.push_back(step);
  }

  // Whether an advertised message should stay where it is.
  bool prefers_pull(std::int64_t length) const {
    if (!options_.pull) return false;
    if (options_.pull_from >= 0) return length >= options_.pull_from;
    return program_.staging_bytes + length > options_.staged_up_to;
  }

  std::optional<schedule::InPlace> shared() const {
    if (!options_.in_place) return std::nullopt;
    return schedule::in_place(schedule_.shape, schedule_.rank);
  }

  Place stage(std::int32_t reader, const Range& source, std::int64_t length) {
    Step step;
    step.kind = StepKind::stage;
    step.peer = reader;
    step.left = locate(source);
    step.target = {Space::staging, program_.staging_bytes};
    step.bytes = length;
    program_.steps.push_back(step);
    program_.staging_bytes += (length + kLineBytes - 1) / kLineBytes * kLineBytes;
    return step.target;
  }

  void bind_wait(SlotId slot) {
    const schedule::Slot& place = schedule_.slots[static_cast<std::size_t>(slot)];
    Step step;
    step.kind = StepKind::wait;
    step.peer = place.source;
    step.flag = flag(schedule_.rank, slot);
    step.length_header = bytes(place.count);
    program_.steps.push_back(step);
  }

  // A slot is copied whole, and once.
  void bind_copy(const Op& op) {
    Step step;
    step.kind = StepKind::copy;
    step.target = locate(op.target);
    step.bytes = bytes(op.target.count);
    if (op.left.memory != Memory::slot) {
      if (op.target.count == 0) return;
      step.left = locate(op.left);
      program_.steps.push_back(step);
      return;
    }
    const schedule::Slot& slot = schedule_.slots[static_cast<std::size_t>(op.left.slot)];
    UNISONO_CHECK(op.left.offset == 0 && op.left.count == slot.count, "a copy of a whole slot");
    step.left = payload(schedule_.rank, op.left.slot, step.bytes);
    if (!is_advertised(step.bytes)) {
      program_.steps.push_back(step);
      return;
    }
    step.kind = StepKind::pull;
    step.peer = slot.source;
    if (!options_.hosts.share(schedule_.rank, slot.source)) {
      step.kind = StepKind::get;
      // The slot's share of the data area is free, because its message is advertised instead.
      step.count = shares_.long_bytes;
      step.right = share_of(schedule_.rank, op.left.slot, step.count);
    }
    program_.steps.push_back(step);
    Step taken = message_to(slot.source, StepKind::put);
    taken.flag = taken_flag(slot.source, schedule_.rank);
    taken.target = taken.left = {Space::receive_buffers, taken.flag};
    program_.steps.push_back(taken);
  }

  void bind_return(std::int32_t peer) {
    Step step;
    step.kind = StepKind::wait;
    step.peer = peer;
    step.flag = taken_flag(schedule_.rank, peer);
    program_.steps.push_back(step);
  }

  Place locate(const Range& range) const {
    const bool is_input = range.memory == Memory::input;
    UNISONO_CHECK(is_input || range.memory == Memory::output, "a block of the caller's");
    const BufferLayout& layout = is_input ? options_.input : options_.output;
    std::int64_t element = range.offset;
    if (range.count > 0 && !layout.contiguous()) {
      const BufferLayout::Piece& piece = layout.piece_of(element);
      UNISONO_CHECK(element + range.count <= piece.offset + piece.count, "a block in one piece");
      element += piece.place - piece.offset;
    }
    return {is_input ? Space::input : Space::output, bytes(element)};
  }

  const Schedule& schedule_;
  const LocalOptions& options_;
  BlockShares shares_;
  // The receivers of advertised messages.
  std::vector<std::int32_t> staged_for_, pulled_by_;
  Program program_;
};

}  // namespace

// There are at most as many slots as other ranks.
BlockShares BlockShares::of(const LocalOptions& options) {
  const auto share = [](std::int64_t bytes, std::int64_t parts) {
    return bytes / parts / kLineBytes * kLineBytes;
  };
  const std::int64_t all = options.geometry.data_bytes;
  const std::int64_t ranks = options.geometry.ranks;
  const std::int64_t equal = share(std::min(all, options.most_bytes), ranks);
  if (options.hosts.given() && options.most_of_short < all) {
    const std::int64_t longer = share(all - options.most_of_short, ranks - 1);
    if (longer > equal) return {share(options.most_of_short, ranks), options.most_of_short, longer};
  }
  return {equal, ranks * equal, equal};
}

std::int64_t longest_block(const LocalOptions& options) {
  return BlockShares::of(options).long_bytes;
}

Program bind_local(const Schedule& schedule, const LocalOptions& options) {
  Program program = LocalBinder(schedule, options).bind();
  if (options.hosts.given()) note_partners_of_local(program, schedule, options.hosts);
  return program;
}

}  // namespace unisono::plan
