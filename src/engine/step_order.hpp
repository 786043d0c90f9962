// SPDX-License-Identifier: BSD-3-Clause
// Step order: in which order a rank's ops become steps, and which of them others may do for it.
// Without helping, the order of the schedule. With helping, what sends need comes first, and what a
// rank does for itself alone comes last: that is never helped, so it may touch the caller's
// buffers, and a helper does no more than what others wait for. Sends come no later than in the
// schedule, so the proof that the set does not deadlock holds. Control path; pure; any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "schedule/schedule.hpp"

namespace unisono::engine {

struct StepOrder {
  std::vector<schedule::OpId> ops;  // all of them, predecessors first
  // Of them, so many may be done by others: up to the last send that comes after a wait.
  std::size_t helpable = 0;
  // Whether those behind the first wait touch the caller's buffers, which then have to be staged.
  bool stages_input = false;
  bool stages_output = false;
};

StepOrder order_steps(const schedule::Schedule& schedule, bool helping);

}  // namespace unisono::engine
