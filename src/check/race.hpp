// SPDX-License-Identifier: BSD-3-Clause
// Races: two ops that touch the same element, one of them writing, and a slot's reader and its
// wait, have to be ordered. Ordered by predecessors is what an algorithm should aim for; an order
// through messages of other ranks is as good, and is looked for where the first fails.
#pragma once

#include "check/order.hpp"

namespace unisono::check {

// race and unwaited_read. In place, only ranks whose buffers are then one are looked at again.
void check_races(std::span<const Schedule> set, const Links& links, std::span<const OpAt> run,
                 Placement placement, Report& report);

}  // namespace unisono::check
