// SPDX-License-Identifier: BSD-3-Clause
// UNISONO_MPI: which collectives Unisono does. Any thread.
#pragma once

#include <cstdint>

namespace unisono::mpi {

// Bits of Collective. UNISONO_MPI=off: none. A list of names, such as "alltoall,scan": all others.
std::uint32_t selected_collectives();

}  // namespace unisono::mpi
