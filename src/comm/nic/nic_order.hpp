// SPDX-License-Identifier: BSD-3-Clause
// NicOrder: the operations of a rank in the NIC path that are not done, in the order of their
// starts. An operation may be detached: its call has returned, and the programs complete it
// (decision 71). The order then keeps what is needed of it. One thread at a time. On the data path:
// only its deque allocates, when it grows.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>

#include "engine/operation.hpp"
#include "nic/port/vector_limit.hpp"
#include "plan/plan.hpp"

namespace unisono::comm {

class NicOrder {
 public:
  // `first`: the number of the first one.
  explicit NicOrder(std::uint64_t first) : next_(first) {}

  // Gives it the next number.
  void add(engine::Operation& operation) {
    operation.nic.number = next_++;
    operations_.push_back(&operation);
  }
  // It is done. Returns the number of operations before the first that is not.
  std::uint64_t remove(const engine::Operation& operation);
  // It will not be done, and no later one will. False: it is not among them.
  bool cancel(const engine::Operation& operation);
  // The call of a posted operation returns. At most nic::kInFlightMax are posted.
  void detach(engine::Operation& operation);
  // Forgets those at the front that are detached.
  void drop_detached();

  bool is_empty() const { return operations_.empty(); }
  const std::deque<engine::Operation*>& all() const { return operations_; }
  // The first one; null: none.
  engine::Operation* first() const { return operations_.empty() ? nullptr : operations_.front(); }
  // The first one, if its call has returned.
  engine::Operation* first_detached() const {
    return !operations_.empty() && operations_.front()->nic.is_detached ? operations_.front()
                                                                        : nullptr;
  }
  // The first one whose call has not returned.
  engine::Operation* first_awaited() const;
  // The number of detached ones at the front.
  std::uint32_t detached() const;

 private:
  struct Detached {
    engine::Operation operation;
    std::shared_ptr<const plan::Plan> plan;
  };

  std::uint64_t next_;
  std::deque<engine::Operation*> operations_;
  std::array<Detached, nic::kInFlightMax> detached_;  // by number
};

}  // namespace unisono::comm
