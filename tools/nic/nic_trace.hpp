// SPDX-License-Identifier: BSD-3-Clause
// The text of `unisono nic trace` for a packet: one line. The packet may be forged and contain
// anything; the line has printable characters only. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "nic/program/trace.h"

namespace unisono::tools {

// `clock_offset_ns`: converts a time of the record (monotonic) to one of the day (UTC). Without an
// end of line.
std::string trace_line(const unisono_nic_trace& record, const std::string& interface,
                       std::int64_t clock_offset_ns);

}  // namespace unisono::tools
