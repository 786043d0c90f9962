// SPDX-License-Identifier: BSD-3-Clause
// Spares: the memory of schedules that nobody needs any more. A choice by price builds thousands of
// short schedules, and most of their time would be allocations. It keeps no more of them than were
// in use at the same time. One thread.
#pragma once

#include <vector>

#include "schedule/schedule.hpp"

namespace unisono::schedule {

class Spares {
 public:
  Spares() = default;
  Spares(const Spares&) = delete;
  Spares& operator=(const Spares&) = delete;

  // While it lives, builders of this thread take the memory of `spares`, which outlive it.
  class Use {
   public:
    explicit Use(Spares& spares);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();

   private:
    Spares* before_;
  };

  void keep(Schedule&& schedule);
  // All of a set, which is empty then.
  void keep_all(std::vector<Schedule>& set);
  // To those that this thread uses, if it does.
  static void give_back(Schedule&& schedule);
  // An empty schedule, with memory if there is some.
  static Schedule take();

 private:
  std::vector<Schedule> spare_;
};

}  // namespace unisono::schedule
