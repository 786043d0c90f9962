// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/spares.hpp"

#include <utility>

namespace unisono::schedule {
namespace {

thread_local Spares* used = nullptr;
thread_local Spares::Order used_order = Spares::Order::needed;
thread_local bool without_steps = false;

void empty(Schedule& schedule) {
  schedule.shape = {};
  schedule.scratch_count = 0;
  schedule.slots.clear();
  schedule.ops.clear();
  schedule.after.clear();
  schedule.targets.clear();
  schedule.operands.clear();
}

}  // namespace

Spares::Use::Use(Spares& spares, Order order)
    : before_(std::exchange(used, &spares)), order_before_(std::exchange(used_order, order)) {}
Spares::Use::~Use() {
  used = before_;
  used_order = order_before_;
}

Spares::WithoutSteps::WithoutSteps() : before_(std::exchange(without_steps, true)) {}
Spares::WithoutSteps::~WithoutSteps() { without_steps = before_; }

bool Spares::leave_out_order() { return used_order == Order::left_out || without_steps; }
bool Spares::leave_out_steps() { return without_steps; }

void Spares::keep(Schedule&& schedule) {
  empty(schedule);
  spare_.push_back(std::move(schedule));
  if (spare_.size() == 1) return;
  // The next one is often long where this one or the last one was: growing costs the most.
  Schedule &last = spare_.back(), &before = spare_[spare_.size() - 2];
  if (last.ops.capacity() < before.ops.capacity()) std::swap(last, before);
}

void Spares::keep_all(std::vector<Schedule>& set) {
  if (spare_.empty()) {
    for (Schedule& each : set) empty(each);
    spare_.swap(set);
    return;
  }
  if (set.size() > spare_.size()) spare_.reserve(spare_.size() + set.size());
  for (Schedule& each : set) keep(std::move(each));
  set.clear();
}

void Spares::give_back(Schedule&& schedule) {
  if (used != nullptr) used->keep(std::move(schedule));
}

Schedule Spares::take() {
  if (used == nullptr || used->spare_.empty()) return {};
  Schedule schedule = std::move(used->spare_.back());
  used->spare_.pop_back();
  return schedule;
}

}  // namespace unisono::schedule
