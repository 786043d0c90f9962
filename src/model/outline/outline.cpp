// SPDX-License-Identifier: BSD-3-Clause
#include "model/outline/outline.hpp"

#include <algorithm>
#include <numeric>

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
  step_count_ = static_cast<std::size_t>(step - steps_.data());
}

bool Outline::scale(std::int64_t from, std::int64_t to) {
  const std::int64_t common = std::gcd(from, to);
  const std::int64_t parts = from / common, times = to / common;
  if (!std::ranges::all_of(sizes_, [parts](std::int64_t size) { return size % parts == 0; })) {
    return false;
  }
  for (std::int64_t& size : sizes_) size = size / parts * times;
  return true;
}

Outline::Step* Outline::more_steps(std::size_t count) {
  const std::size_t most = step_count_ + count;
  if (steps_.size() < most) steps_.resize(std::max(2 * steps_.size(), most));
  return steps_.data() + step_count_;
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
    const Step* from = steps_.data();
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
  return std::span(steps_).subspan(first, end - first);
}

}  // namespace unisono::model
