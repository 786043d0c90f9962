// SPDX-License-Identifier: BSD-3-Clause
// InUse: while it lives, algorithms of this thread look into `kept` for what they have found
// before, and keep there what they find. A choice by price builds the schedules of all ranks, which
// need the same again and again. `kept` outlives it; they nest.
#pragma once

#include <utility>

namespace unisono::algorithm {

template <class Kept>
class InUse {
 public:
  explicit InUse(Kept& kept) : before_(std::exchange(current_, &kept)) {}
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse() { current_ = before_; }

  // Null: there is none.
  static Kept* current() { return current_; }

 private:
  inline static thread_local Kept* current_ = nullptr;

  Kept* before_;
};

}  // namespace unisono::algorithm
