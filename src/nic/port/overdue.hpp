// SPDX-License-Identifier: BSD-3-Clause
// Overdue: when a process that waits for its operations takes packets to be lost and asks: if for
// some time none of them has ended and none was asked for. One thread at a time; no clock of its
// own.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace unisono::nic {

class Overdue {
 public:
  // Of the operations before `next`: calls ask(sequence) for all of which is_over(sequence) is
  // false, if it is time. Returns for how many. `now_ns` is of any one clock.
  template <typename IsOver, typename Ask>
  base::Result<int> repair(std::uint64_t next, std::int64_t now_ns, std::int64_t delay_ns,
                           const IsOver& is_over, const Ask& ask) {
    const std::uint64_t before = first_waited_;
    while (first_waited_ < next && is_over(first_waited_)) ++first_waited_;
    const bool was_idle = idle_;
    idle_ = first_waited_ == next;
    if (first_waited_ != before || was_idle) waits_since_ns_ = now_ns;
    if (now_ns - waits_since_ns_ < delay_ns) return 0;
    int asked = 0;
    for (std::uint64_t sequence = first_waited_; sequence < next; ++sequence) {
      if (is_over(sequence)) continue;
      UNISONO_TRY(ask(sequence));
      ++asked;
    }
    waits_since_ns_ = now_ns;
    return asked;
  }

 private:
  std::uint64_t first_waited_ = 0;  // all operations before it were over at the last repair()
  bool idle_ = true;                // ... and there was no other
  std::int64_t waits_since_ns_ = 0;
};

}  // namespace unisono::nic
