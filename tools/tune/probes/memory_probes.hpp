// SPDX-License-Identifier: BSD-3-Clause
// What this machine's memory and cores take, without the library: flags and bytes between two
// threads, copies, reduction kernels, and passing a core on. Start threads of their own; main
// thread.
#pragma once

#include <cstdint>

#include "arith/type.hpp"
#include "tune/probes/sample.hpp"

namespace unisono::tools::tune {

// A message one way: written, flagged, seen and read. Half of a round trip.
Sample flight(std::int64_t bytes, std::int64_t budget_ns);
// Its sender's part: written and flagged.
Sample sending(std::int64_t bytes, std::int64_t budget_ns);
Sample copying(std::int64_t bytes, std::int64_t budget_ns);
Sample combining(arith::Operator op, arith::Type type, std::int64_t bytes, std::int64_t budget_ns);
// Two threads on one core that yield to each other: once.
Sample handing_over(std::int64_t budget_ns);
// A thread that sleeps is woken and answers: once.
Sample waking_up(std::int64_t budget_ns);

}  // namespace unisono::tools::tune
