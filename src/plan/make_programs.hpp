// SPDX-License-Identifier: BSD-3-Clause
// The part of a plan that depends on neither operator nor type, beyond the size of elements. It is
// most of a plan's memory and of the time to make it: how the call is cut into segments, and the
// programs of each. Control path; any thread.
#pragma once

#include "base/result.hpp"
#include "plan/call.hpp"
#include "plan/plan.hpp"
#include "select/select.hpp"

namespace unisono::plan {

struct PlanContext;

// Builds all ranks' schedules of the call by the chosen algorithm and binds them. A call that is
// longer than the receive buffers is split into segments. Fills the plan's engine, parts and what
// belongs to them.
base::Status make_programs(const PlanContext& context, const Call& call,
                           const select::Choice& choice, Plan& plan);

}  // namespace unisono::plan
