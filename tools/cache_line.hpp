// SPDX-License-Identifier: BSD-3-Clause
// How long a cache line takes from one core to another and back. It tells states of the machine
// apart: virtual cores may be moved closer together and further apart while it runs. Any thread;
// takes some milliseconds.
#pragma once

#include <optional>

namespace unisono::tools {

struct CacheLine {
  double round_trip_ns = 0;
  int first_core = 0;
  int second_core = 0;
};

// Between the first two cores on which this process may run; none if it may run on one only.
std::optional<CacheLine> measure_cache_line();

}  // namespace unisono::tools
