// SPDX-License-Identifier: BSD-3-Clause
#include "plan/bind/landings.hpp"

#include <algorithm>
#include <optional>

namespace unisono::plan {
namespace {

using schedule::InPlace;
using schedule::Memory;
using schedule::Op;
using schedule::OpId;
using schedule::OpKind;
using schedule::Range;
using schedule::Schedule;

// For more slots times ops, as in exchanges of some 600 ranks, it would take long to look.
constexpr std::size_t kMostLooks = std::size_t{1} << 20;

bool share_elements(const Range& a, const Range& b) {
  return a.offset < b.offset + b.count && b.offset < a.offset + a.count;
}

// How a slot is read.
struct Reading {
  OpId copy = -1;  // of all of it, to the output; the first one
  OpId wait = -1;
  bool is_in_other_segment = false;  // another wait stands between its wait and the copy
  int others = 0;                    // what else reads it, but for sends
  bool is_sent = false;
};

std::vector<Reading> readings_of(const Schedule& schedule) {
  std::vector<Reading> readings(schedule.slots.size());
  OpId last_wait = -1;
  const auto note = [&](OpId id, const Range& range) {
    if (range.memory != Memory::slot || range.count == 0) return;
    const Op& op = schedule.ops[static_cast<std::size_t>(id)];
    Reading& reading = readings[static_cast<std::size_t>(range.slot)];
    if (op.kind == OpKind::send || op.kind == OpKind::multicast) {
      reading.is_sent = true;
    } else if (op.kind == OpKind::copy && op.target.memory == Memory::output &&
               range.count == schedule.slots[static_cast<std::size_t>(range.slot)].count &&
               reading.copy < 0) {
      reading.copy = id;
      reading.is_in_other_segment = last_wait != reading.wait;
    } else {
      ++reading.others;
    }
  };
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    const auto id = static_cast<OpId>(i);
    if (op.kind == OpKind::wait) {
      readings[static_cast<std::size_t>(op.slot)].wait = id;
      last_wait = id;
    }
    schedule::for_each_read(schedule, op, [&](const Range& range) { note(id, range); });
  }
  return readings;
}

// The slots of one schedule.
class Finder {
 public:
  explicit Finder(const Schedule& schedule)
      : schedule_(schedule), in_place_(schedule::in_place(schedule.shape, schedule.rank)) {}

  Landing landing(const Reading& reading) const {
    if (reading.copy < 0 || reading.others > 0) return Landing::no;
    const Op& copy = schedule_.ops[static_cast<std::size_t>(reading.copy)];
    const std::vector<bool> needed = needed_by(reading.copy);
    bool from_start = true, in_place = true, from_start_in_place = true;
    for (OpId id = 0; std::cmp_less(id, schedule_.ops.size()); ++id) {
      if (id == reading.copy) continue;
      const Use use = use_of(schedule_.ops[static_cast<std::size_t>(id)], copy.target);
      if (id > reading.copy) {
        // It does not stay in the output as it came.
        if (use == Use::written && reading.is_sent) return Landing::no;
        continue;
      }
      if (use == Use::none) continue;
      // A step that only another rank's message puts before the copy may come after the landing.
      if (!needed[static_cast<std::size_t>(id)]) return Landing::no;
      // The wait's segment alone decides when something lands.
      const bool is_before_wait = id < reading.wait && !reading.is_in_other_segment;
      if (use == Use::in_place) {
        from_start_in_place = false;
        in_place = in_place && is_before_wait;
      } else {
        if (!is_before_wait) return Landing::no;
        from_start = false;
      }
    }
    // In one buffer with different beginnings it is not known for sure that they are two.
    const bool tells = in_place_ && in_place_->input == in_place_->output;
    if (!in_place) return from_start && tells ? Landing::only_apart : Landing::no;
    if (!from_start || (!from_start_in_place && !tells)) return Landing::waited;
    return from_start_in_place ? Landing::start : Landing::apart;
  }

 private:
  // By op, whether one needs it, of its own predecessors or theirs.
  std::vector<bool> needed_by(OpId last) const {
    std::vector<bool> needed(schedule_.ops.size());
    needed[static_cast<std::size_t>(last)] = true;
    for (OpId id = last; id >= 0; --id) {
      if (!needed[static_cast<std::size_t>(id)]) continue;
      for (const OpId before : schedule_.after_of(schedule_.ops[static_cast<std::size_t>(id)])) {
        needed[static_cast<std::size_t>(before)] = true;
      }
    }
    return needed;
  }

  enum class Use : std::uint8_t { none, in_place, read, written };

  // How an op uses a part of the output.
  Use use_of(const Op& op, const Range& target) const {
    if (schedule::writes_range(op) && op.target.memory == Memory::output &&
        share_elements(op.target, target)) {
      return Use::written;
    }
    Use use = Use::none;
    schedule::for_each_read(schedule_, op, [&](const Range& range) {
      if (range.memory == Memory::output && share_elements(range, target)) {
        use = Use::read;
      } else if (use == Use::none && range.memory == Memory::input && in_place_ &&
                 share_elements(in_output(range), target)) {
        use = Use::in_place;
      }
    });
    return use;
  }

  // Elements of the input as elements of the output, in one buffer.
  Range in_output(Range input) const {
    input.offset += in_place_->input - in_place_->output;
    return input;
  }

  const Schedule& schedule_;
  const std::optional<InPlace> in_place_;
};

}  // namespace

Landings::Landings(const Schedule& schedule, const topology::HostMap& hosts,
                   std::int64_t from_count) {
  const auto may_land = [&](const schedule::Slot& slot) {
    return hosts.given() && slot.count >= from_count && !hosts.share(schedule.rank, slot.source);
  };
  if (std::ranges::none_of(schedule.slots, may_land) ||
      schedule.slots.size() * schedule.ops.size() > kMostLooks) {
    return;
  }
  const std::vector<Reading> readings = readings_of(schedule);
  const Finder finder(schedule);
  slots_.resize(schedule.slots.size());
  for (std::size_t s = 0; s < schedule.slots.size(); ++s) {
    if (!may_land(schedule.slots[s])) continue;
    slots_[s].landing = finder.landing(readings[s]);
    if (slots_[s].landing == Landing::no) continue;
    slots_[s].target = schedule.ops[static_cast<std::size_t>(readings[s].copy)].target;
  }
}

}  // namespace unisono::plan
