// SPDX-License-Identifier: BSD-3-Clause
// Overdue: decides when a waiting process assumes that packets are lost and requests them: if for
// some time no operation has ended and none was requested. One thread at a time; no clock of its
// own.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace unisono::nic {

class Overdue {
 public:
  // If it is time, calls ask(sequence) for each operation before `next` whose is_over(sequence) is
  // false. Returns their number. `now_ns` may be of any one clock.
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
  bool idle_ = true;                // ... and no other operation was waited for
  std::int64_t waits_since_ns_ = 0;
};

}  // namespace unisono::nic
