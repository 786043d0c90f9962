// SPDX-License-Identifier: BSD-3-Clause
// Measured and predicted times as an SVG picture of two panels: a reduction over the degree of the
// f-nomial tree, and serial reductions over sizes. Points are measured, with the range of their
// repetitions; lines are predicted. Pure; any thread.
#pragma once

#include <string>

#include "tune/tuning.hpp"

namespace unisono::tools::tune {

std::string tuning_picture(const Tuning& tuning);

}  // namespace unisono::tools::tune
