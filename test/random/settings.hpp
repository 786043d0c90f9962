// SPDX-License-Identifier: BSD-3-Clause
// Settings of random programs: engines, buffers, copies, waits and algorithms, drawn from those
// that are legal. For tests only.
#pragma once

#include <map>
#include <string>

#include "base/prng.hpp"
#include "schedule/shape.hpp"

namespace unisono::test::programs {

// often: the collective that gets most of the rules for algorithms.
std::map<std::string, std::string> draw_settings(base::Prng& prng, bool hosts,
                                                 schedule::Collective often);

}  // namespace unisono::test::programs
