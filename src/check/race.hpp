// SPDX-License-Identifier: BSD-3-Clause
// Races: two ops that touch the same element must be ordered if one of them writes. So must the
// reader of a slot and its wait. Algorithms should order by predecessors. An order through messages
// of other ranks is valid too, and is checked only if the first is missing.
#pragma once

#include "check/order.hpp"

namespace unisono::check {

// race and unwaited_read. In place, only ranks with a shared buffer are checked again.
void check_races(std::span<const Schedule> set, const Links& links, std::span<const OpAt> run,
                 Placement placement, Report& report);

}  // namespace unisono::check
