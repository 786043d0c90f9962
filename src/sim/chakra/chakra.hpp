// SPDX-License-Identifier: BSD-3-Clause
// Execution traces of MLCommons Chakra, as ASTRA-sim reads them: for each rank a file of protobuf
// messages of et_def.proto, each behind its length. The first one is GlobalMetadata, then follows a
// Node for each step, which depends on the one before. Pure; any thread.
#pragma once

#include <string>

#include "sim/program/program.hpp"

namespace unisono::sim {

// Sends and receptions have the attributes comm_src, comm_dst, comm_size and comm_tag (the
// receiver's slot). The format has whole microseconds for work; the attribute duration_ns is exact.
std::string chakra_trace(const ProgramSet& programs, int rank);

}  // namespace unisono::sim
