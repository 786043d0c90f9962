// SPDX-License-Identifier: BSD-3-Clause
// Settings of random programs: engines, buffers, copies, waits, algorithms and the constants of a
// machine file, drawn from those that are legal. For tests only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/prng.hpp"
#include "schedule/shape.hpp"

namespace unisono::test::programs {

// often: the collective that gets most of the rules for algorithms.
std::map<std::string, std::string> draw_settings(base::Prng& prng, bool hosts,
                                                 schedule::Collective often);

// Constants of a machine file by name: lengths, numbers of ranks and times. With them, messages of
// any length take ways that are for long ones otherwise.
using Constants = std::map<std::string, std::int64_t>;
Constants draw_constants(base::Prng& prng);
// Writes a machine file with these constants into the folder. All else is as on the default
// machine.
std::string write_machine(const Constants& constants, const std::string& folder);

}  // namespace unisono::test::programs
