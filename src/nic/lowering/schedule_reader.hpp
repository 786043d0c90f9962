// SPDX-License-Identifier: BSD-3-Clause
// ScheduleReader: the common base of the lowerings in this folder. They read a schedule op by op,
// as an engine would execute it, and name the op that the NIC program cannot do. It lives for one
// lowering; no virtual functions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "schedule/schedule.hpp"

namespace unisono::nic {

class ScheduleReader {
 protected:
  explicit ScheduleReader(const schedule::Schedule& schedule) : schedule_(schedule) {}

  // Hands all ops to take(op), which says whether it can go on.
  template <typename Take>
  base::Status each_op(const Take& take) {
    for (at_ = 0; at_ < static_cast<int>(schedule_.ops.size()); ++at_) {
      UNISONO_TRY(take(schedule_.ops[static_cast<std::size_t>(at_)]));
    }
    at_ = -1;
    return base::success();
  }

  // Names the op, if it is one's fault.
  base::Error refuse(std::string_view why) const;

  // An allgather of at most as many ranks as a row can hold, each with a block that is not empty.
  base::Status check_allgather() const;

  // The one, or first, target of a send.
  schedule::Target target(const schedule::Op& op) const { return schedule_.targets_of(op)[0]; }
  const schedule::Slot& slot(schedule::SlotId number) const {
    return schedule_.slots[static_cast<std::size_t>(number)];
  }
  static std::string memory_text(const schedule::Range& range);

  const schedule::Schedule& schedule_;

 private:
  int at_ = -1;  // the op that is read; -1: none
};

}  // namespace unisono::nic
