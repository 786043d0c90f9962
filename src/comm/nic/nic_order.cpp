// SPDX-License-Identifier: BSD-3-Clause
#include "comm/nic/nic_order.hpp"

#include <algorithm>

namespace unisono::comm {

std::uint64_t NicOrder::remove(const engine::Operation& operation) {
  std::erase(operations_, &operation);
  return operations_.empty() ? next_ : operations_.front()->nic.number;
}

bool NicOrder::cancel(const engine::Operation& operation) {
  if (std::erase(operations_, &operation) == 0) return false;
  next_ = std::min(next_, operation.nic.number);
  return true;
}

// The caller's operation is used for its next call. Its plan may be evicted when no call is in
// progress, so the order shares it.
void NicOrder::detach(engine::Operation& operation) {
  Detached& kept = detached_[operation.nic.number % detached_.size()];
  kept.plan = operation.plan->shared_from_this();
  kept.operation.plan = kept.plan.get();
  kept.operation.engine = operation.engine;
  kept.operation.index = operation.index;
  kept.operation.nic = operation.nic;
  kept.operation.nic.input = nullptr;
  kept.operation.nic.output = nullptr;
  kept.operation.nic.is_detached = true;
  std::ranges::replace(operations_, &operation, &kept.operation);
}

void NicOrder::drop_detached() {
  while (first_detached() != nullptr) operations_.pop_front();
}

engine::Operation* NicOrder::first_awaited() const {
  const auto is_awaited = [](const engine::Operation* each) { return !each->nic.is_detached; };
  const auto found = std::ranges::find_if(operations_, is_awaited);
  return found == operations_.end() ? nullptr : *found;
}

std::uint32_t NicOrder::detached() const {
  const auto is_awaited = [](const engine::Operation* each) { return !each->nic.is_detached; };
  return static_cast<std::uint32_t>(std::ranges::find_if(operations_, is_awaited) -
                                    operations_.begin());
}

}  // namespace unisono::comm
