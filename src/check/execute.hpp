// SPDX-License-Identifier: BSD-3-Clause
// Symbolic execution: executes the set once, in one legal order, over symbols instead of numbers,
// and compares every output with the definition of the collective. Without races, all legal orders
// give the same result.
#pragma once

#include "check/order.hpp"
#include "check/symbol.hpp"

namespace unisono::check {

// undefined_read, missing, doubled, misplaced, out_of_order. `values` may have been used for
// another pass of the same set.
void check_outputs(std::span<const Schedule> set, std::span<const OpAt> run, Placement placement,
                   Values& values, Report& report);

// missing: a rank that can leave the barrier before another has entered it.
void check_barrier(std::span<const Schedule> set, const Links& links, std::span<const OpAt> run,
                   Report& report);

}  // namespace unisono::check
