// SPDX-License-Identifier: BSD-3-Clause
// What collectives of the library take on this host, by a job whose ranks are threads. Main thread.
#pragma once

#include <unisono/unisono.h>

#include <cstdint>
#include <functional>

#include "base/result.hpp"
#include "tune/sample.hpp"

namespace unisono::tools::tune {

// To be set as UNISONO_ALGORITHM before the first probe: the schedules that are priced, too.
inline constexpr const char* kProbedAlgorithms =
    "barrier:dissemination | reduce:serial | broadcast:flat";

// Each probe starts a job of its own. The root changes with each call, so that no call begins
// before the one before it has ended.
base::Result<Sample> barrier(int ranks, std::int64_t budget_ns);
base::Result<Sample> broadcast(int ranks, std::int64_t bytes, std::int64_t budget_ns);
// Serial reduction of float64 sums.
base::Result<Sample> serial_reduction(int ranks, std::int64_t bytes, std::int64_t budget_ns);

}  // namespace unisono::tools::tune
