// SPDX-License-Identifier: BSD-3-Clause
// GOAL binary, the schedules that LogGOPSim loads (serialize_mmap in its Parser.hpp). Numbers are
// little-endian and packed:
//
//   u64 4223, then what offsets count from: u32 ranks, u8 highest processor, u8 highest NIC,
//   for each rank: u64 begin, u64 end of its part
//   a part: u32 operations, u32 roots, u32 number of each root (an operation without dependencies),
//   for each operation: u32 dependencies, u8 kind (1 send, 2 recv, 3 calc), u32 peer,
//     u64 bytes or nanoseconds, u32 tag, u8 processor, u8 NIC, u32 dependents, u32 first of them,
//     u32 dependents on its start, u32 first of them
//   the list of dependents: u32 number of each operation
//
// The reader refuses what the reader of texts refuses (goal_file.hpp). Refusals name the file, the
// byte and the expected value. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/program/program.hpp"

namespace unisono::sim {

// The same schedule as goal_text().
std::string goal_binary(const ProgramSet& programs);

// Whether a file begins as GOAL binary does.
bool is_goal_binary(std::string_view content);
// By rank. They end: a set that deadlocks is refused.
base::Result<std::vector<Trace>> parse_goal_binary(std::string_view content, std::string_view file);

}  // namespace unisono::sim
