// SPDX-License-Identifier: BSD-3-Clause
#include "model/outline/outline.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"
#include "base/index.hpp"
#include "schedule/step_order.hpp"

namespace unisono::model {

using schedule::Op;
using schedule::OpKind;
using schedule::Schedule;

void Outline::clear() {
  ranks_.clear();
  step_count_ = 0;
  targets_.clear();
  slots_ = 0;
  sizes_.clear();
  near_.fill(-1);
  last_size_ = -1;
}

std::int32_t Outline::find_size(std::int64_t elements) {
  const std::uint64_t hash = static_cast<std::uint64_t>(elements) * 0x9e3779b97f4a7c15U;
  std::int32_t& near = near_[hash >> (64 - kNearBits)];
  if (near < 0 || sizes_[base::index(near)] != elements) {
    near = static_cast<std::int32_t>(sizes_.size());
    sizes_.push_back(elements);
  }
  last_size_ = elements;
  last_ = near;
  return near;
}

void Outline::add(const Schedule& schedule, bool are_helped) {
  const std::int64_t staged = are_helped ? schedule::staged_elements(schedule, needed_) : 0;
  ranks_.push_back({step_count_, slots_, size_of(staged)});
  slots_ += schedule.slots.size();
  Step* step = more_steps(schedule.ops.size());
  for (const Op& op : schedule.ops) {
    switch (op.kind) {
      case OpKind::send: {
        const schedule::Target& target = schedule.targets[base::index(op.first_target)];
        *step++ = {Kind::send, size_of(op.left.count), target.slot, target.peer};
        break;
      }
      case OpKind::multicast: {
        *step++ = {Kind::multicast, size_of(op.left.count),
                   static_cast<std::int32_t>(targets_.size()), op.target_count};
        const auto targets = schedule.targets_of(op);
        targets_.insert(targets_.end(), targets.begin(), targets.end());
        break;
      }
      case OpKind::wait:
        *step++ = {Kind::wait, size_of(schedule.slots[base::index(op.slot)].count), op.slot, 0};
        break;
      case OpKind::reduce:
        *step++ = {Kind::reduce, size_of(op.target.count), 0, 1};
        break;
      case OpKind::sum:
        *step++ = {Kind::reduce, size_of(op.target.count), 0, op.operand_count - 1};
        break;
      case OpKind::copy:
        // Onto itself it touches nothing.
        if (op.left != op.target) *step++ = {Kind::copy, size_of(op.target.count), 0, 0};
        break;
    }
  }
  step_count_ = static_cast<std::size_t>(step - steps_.get());
}

bool Outline::can_scale(std::int64_t from, std::int64_t to) const {
  const std::int64_t parts = from / std::gcd(from, to);
  return std::ranges::all_of(sizes_, [parts](std::int64_t size) { return size % parts == 0; });
}

bool Outline::scale(std::int64_t from, std::int64_t to) {
  if (!can_scale(from, to)) return false;
  const std::int64_t common = std::gcd(from, to);
  const std::int64_t parts = from / common, times = to / common;
  for (std::int64_t& size : sizes_) size = size / parts * times;
  return true;
}

Outline::Step* Outline::more_steps(std::size_t count) {
  const std::size_t most = step_count_ + count;
  if (step_room_ < most) {
    step_room_ = std::max(2 * step_room_, most);
    // The steps of many ranks move to other addresses then, and are not copied.
    auto* const more = static_cast<Step*>(std::realloc(steps_.get(), step_room_ * sizeof(Step)));
    UNISONO_CHECK(more != nullptr, "no memory for an outline");
    static_cast<void>(steps_.release());
    steps_.reset(more);
  }
  return steps_.get() + step_count_;
}

void Outline::repeat(const Outline& longer, int longer_ones, const Outline& shorter,
                     int shorter_ones) {
  clear();
  const std::int32_t pieces = longer_ones + shorter_ones;
  const Outline& any = longer_ones > 0 ? longer : shorter;
  const auto slots_of = [&any](int rank) {
    const std::size_t end = rank + 1 < any.ranks() ? any.at(rank + 1).first_slot : any.slots_;
    return static_cast<std::int32_t>(end - any.at(rank).first_slot);
  };
  const auto sizes_in = [this](const Outline& piece) {
    std::vector<std::int32_t> here;
    for (const std::int64_t size : piece.sizes_) here.push_back(size_of(size));
    return here;
  };
  const std::vector<std::int32_t> of_longer = sizes_in(longer), of_shorter = sizes_in(shorter);
  Step* step = more_steps(any.step_count_ * base::index(pieces));
  for (int rank = 0; rank < any.ranks(); ++rank) {
    std::int64_t staged = 0;
    if (longer_ones > 0) staged += longer_ones * longer.sizes_[base::index(longer.staged_by(rank))];
    if (shorter_ones > 0)
      staged += shorter_ones * shorter.sizes_[base::index(shorter.staged_by(rank))];
    ranks_.push_back({base::index(step - steps_.get()), slots_, size_of(staged)});
    const std::int32_t own = slots_of(rank);
    for (std::int32_t i = 0; i < pieces; ++i) {
      const bool is_longer = i < longer_ones;
      const std::vector<std::int32_t>& sizes = is_longer ? of_longer : of_shorter;
      for (Step each : (is_longer ? longer : shorter).steps_of(rank)) {
        each.size = sizes[base::index(each.size)];
        if (each.kind == Kind::wait) each.slot += i * own;
        if (each.kind == Kind::send) each.slot += i * slots_of(each.peer);
        *step++ = each;
      }
    }
    slots_ += base::index(own) * base::index(pieces);
  }
  step_count_ = base::index(step - steps_.get());
}

void Outline::rotate(int ranks) {
  const Rank first = ranks_.front();
  const std::size_t steps = step_count_, targets = targets_.size(), slots = slots_;
  const std::int32_t all = ranks + 1;
  const auto shifted = [all](std::int32_t peer, std::int32_t by) {
    return peer < all - by ? peer + by : peer - (all - by);
  };
  Step* to = more_steps(steps * base::index(ranks));
  for (std::int32_t rank = 1; rank < all; ++rank) {
    ranks_.push_back({steps * base::index(rank), slots * base::index(rank), first.staged});
    const Step* from = steps_.get();
    for (std::size_t i = 0; i < steps; ++i, ++from, ++to) {
      *to = *from;
      if (from->kind == Kind::send) to->peer = shifted(from->peer, rank);
      if (from->kind == Kind::multicast) {
        to->slot += static_cast<std::int32_t>(targets * base::index(rank));
      }
    }
    for (std::size_t i = 0; i < targets; ++i) {
      const schedule::Target target = targets_[i];
      targets_.push_back({shifted(target.peer, rank), target.slot});
    }
  }
  step_count_ = steps * base::index(all);
  slots_ = slots * base::index(all);
}

std::span<const Outline::Step> Outline::steps_of(int rank) const {
  const std::size_t first = at(rank).first_step;
  const std::size_t end = rank + 1 < ranks() ? at(rank + 1).first_step : step_count_;
  return {steps_.get() + first, end - first};
}

}  // namespace unisono::model
