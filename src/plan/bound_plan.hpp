// SPDX-License-Identifier: BSD-3-Clause
// BoundPlan: the common part of plans whose calls differ only in a type of the same size and a
// built-in operator. It is most of their memory and of the time to make them: how the call is cut
// into segments, and the programs of each. Control path; immutable once made; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "plan/call.hpp"
#include "plan/plan.hpp"
#include "select/select.hpp"

namespace unisono::plan {

struct PlanContext;

struct BoundPlan {
  bool helping = false;
  bool bulk = false;         // which lane
  bool single_copy = false;  // long messages are read from their sender's memory
  std::int64_t segments = 1;
  std::int64_t input_stride = 0, output_stride = 0;
  std::vector<Plan::Part> parts;
  std::int64_t staging_bytes = 0;
};

// Builds all ranks' schedules of the call by the chosen algorithm, splits it into segments if it is
// longer than the receive buffers, and binds.
base::Result<std::shared_ptr<const BoundPlan>> bind_plan(const PlanContext& context,
                                                         const Call& call,
                                                         const select::Choice& choice);

}  // namespace unisono::plan
