// SPDX-License-Identifier: BSD-3-Clause
// Bound ranks: those that are bound to each other if calls follow each other. Pure; any thread.
#pragma once

#include <span>
#include <vector>

#include "schedule/schedule.hpp"

namespace unisono::model {

// Marks, of a set by rank, those that wait for ranks which wait for them. It also marks ranks
// between two such groups. The others may be some calls ahead or behind.
std::vector<bool> find_bound(std::span<const schedule::Schedule> set);

}  // namespace unisono::model
