// SPDX-License-Identifier: BSD-3-Clause
// What collectives of the library take on this host, by a job whose ranks are threads. Main thread.
#pragma once

#include <unisono/unisono.h>

#include <cstdint>
#include <functional>

#include "base/result.hpp"
#include "tune/messages.hpp"
#include "tune/probes/sample.hpp"

namespace unisono::tools::tune {

// To be set as UNISONO_ALGORITHM before the first probe: the schedules that are priced, too.
inline constexpr const char* kProbedAlgorithms =
    "barrier:dissemination | reduce:serial | scatter:linear | gather:linear | alltoall:linear | "
    "broadcast:chain(4)@520-528; chain(8)@528-536; chain(16)@536-544; chain(64)@544-552; flat";

// Each probe starts a job of its own. The root changes with each call, so that no call begins
// before the one before it has ended.
base::Result<Sample> barrier(int ranks, std::int64_t budget_ns);
base::Result<Sample> broadcast(int ranks, std::int64_t bytes, std::int64_t budget_ns);
// Serial reduction of float64 sums.
base::Result<Sample> serial_reduction(int ranks, std::int64_t bytes, std::int64_t budget_ns);
// The same up an f-nomial tree. The library reads its settings once in a process, so that each
// degree has a child of its own. Before any other probe: this process must have no threads.
base::Result<Sample> reduction_of_degree(int degree, int ranks, std::int64_t bytes,
                                         std::int64_t budget_ns);
// A broadcast with one copy by the kernel, or two through buffers, by the algorithm that the
// library chooses. In a child as well. Errors: Code::system where ranks may not read each other's
// memory.
enum class Copies : std::uint8_t { one, two };
base::Result<Sample> copied_broadcast(Copies copies, int ranks, std::int64_t bytes,
                                      std::int64_t budget_ns);
// A call of many messages.
base::Result<Sample> many_messages(const MessageProbe& probe, int ranks, std::int64_t budget_ns);

}  // namespace unisono::tools::tune
