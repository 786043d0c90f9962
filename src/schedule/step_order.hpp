// SPDX-License-Identifier: BSD-3-Clause
// Step order: the order in which a rank's ops become steps, and the steps that other ranks may do
// for it. Without helping, it is the order of the schedule. With helping, ops that sends need come
// first, and a rank's work for itself alone comes last. That work is never helped, so it may touch
// the caller's buffers, and a helper does only what others wait for. Sends come no later than in
// the schedule, so the proof that the set does not deadlock holds. Control path; pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedule/schedule.hpp"

namespace unisono::schedule {

struct StepOrder {
  std::vector<OpId> ops;  // all of them, predecessors first
  // The number of them that others may do: up to the last send that comes after a wait.
  std::size_t helpable = 0;
  // Whether those behind the first wait touch the caller's buffers, which then have to be staged.
  bool stages_input = false;
  bool stages_output = false;
};

StepOrder order_steps(const Schedule& schedule, bool helping);

// A part of the order with helping, at less cost. `needed` is memory that calls may share.
struct Helpable {
  bool any = false;  // others may do steps
  bool stages_input = false, stages_output = false;
};
Helpable helpable_steps(const Schedule& schedule, std::vector<char>& needed);
// The elements of the caller's buffers that a helped rank has to copy to where others reach them.
std::int64_t staged_elements(const Schedule& schedule, std::vector<char>& needed);

}  // namespace unisono::schedule
