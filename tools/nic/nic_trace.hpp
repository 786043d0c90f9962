// SPDX-License-Identifier: BSD-3-Clause
// What `unisono nic trace` says of a packet: one line. Whoever sent the packet may have put
// anything into it; the line is one of printable characters all the same. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "nic/program/trace.h"

namespace unisono::tools {

// `clock_offset_ns`: what makes a time of the record (monotonic) one of the day (UTC). Without an
// end of line.
std::string trace_line(const unisono_nic_trace& record, const std::string& interface,
                       std::int64_t clock_offset_ns);

}  // namespace unisono::tools
