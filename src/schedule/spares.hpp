// SPDX-License-Identifier: BSD-3-Clause
// Spares: the memory of schedules that nobody needs any more. A choice by price builds thousands of
// short schedules, and most of their time would be allocations. It keeps no more of them than were
// in use at the same time. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.hpp"

namespace unisono::schedule {

class Spares {
 public:
  Spares() = default;
  Spares(const Spares&) = delete;
  Spares& operator=(const Spares&) = delete;

  // Whether those who build need the predecessors of each step. Many prices do not.
  enum class Order : std::uint8_t { needed, left_out };

  // While it lives, builders of this thread take the memory of `spares`, which outlive it. Where
  // the order is left out, their ops have no predecessors.
  class Use {
   public:
    explicit Use(Spares& spares, Order order = Order::needed);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();

   private:
    Spares* before_;
    Order order_before_;
  };

  // While it lives, builders of this thread leave out all steps but multicasts, and the order of
  // those. The slots and the scratch memory are there, so that it is known what buffers hold.
  class WithoutSteps {
   public:
    WithoutSteps();
    WithoutSteps(const WithoutSteps&) = delete;
    WithoutSteps& operator=(const WithoutSteps&) = delete;
    ~WithoutSteps();

   private:
    bool before_;
  };

  void keep(Schedule&& schedule);
  // All of a set, which is empty then.
  void keep_all(std::vector<Schedule>& set);
  // To those that this thread uses, if it does.
  static void give_back(Schedule&& schedule);
  static bool leave_out_order();
  static bool leave_out_steps();
  // An empty schedule, with memory if there is some.
  static Schedule take();

 private:
  std::vector<Schedule> spare_;
};

}  // namespace unisono::schedule
