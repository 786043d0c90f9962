// SPDX-License-Identifier: BSD-3-Clause
// When the ranks of a simulation end, as an SVG picture of two panels: over the ranks, and how many
// have ended by a time. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "sim/program/program.hpp"

namespace unisono::tools {

// `ranks` took part. A simulation in which they are alike has no times by rank.
std::string ends_picture(std::string_view title, const sim::SimulationResult& result, int ranks);

}  // namespace unisono::tools
