// SPDX-License-Identifier: BSD-3-Clause
// A blocking call in the NIC path, for callers with no other work meanwhile: a communicator's
// trial, tests and benchmarks. A communicator has a wait of its own, which also checks for failures
// and does other work.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "engine/nic/nic_group.hpp"

namespace unisono::engine {

// Starts the call when the group has room, waits for its result and takes it. `deadline_ns`:
// by the clock of base/clock.hpp; at the deadline it gives the group up.
base::Status run_in_nic(NicGroup& group, const plan::NicCall& call, const void* input, void* output,
                        std::int64_t deadline_ns);

}  // namespace unisono::engine
