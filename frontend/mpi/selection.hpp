// SPDX-License-Identifier: BSD-3-Clause
// The collectives by their names, and UNISONO_MPI: which of them Unisono does. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "host/functions.hpp"

namespace unisono::mpi {

enum class Collective : std::uint8_t {
#define UNISONO_MPI_NAME(name, ...) name,
  UNISONO_MPI_COLLECTIVES(UNISONO_MPI_NAME)
#undef UNISONO_MPI_NAME
};
#define UNISONO_MPI_COUNT(...) +1
inline constexpr std::size_t kCollectives = UNISONO_MPI_COLLECTIVES(UNISONO_MPI_COUNT);
#undef UNISONO_MPI_COUNT
// Behind "MPI_".
const char* collective_name(Collective collective);
// In small letters, as settings and machine files have it.
std::string small_name(Collective collective);
std::optional<Collective> find_collective(const std::string& small_name);

// A set of Collective has their bits.
constexpr std::uint32_t bit_of(Collective collective) {
  return std::uint32_t{1} << static_cast<unsigned>(collective);
}
// UNISONO_MPI=off: none. A list of names, such as "alltoall,scan": all others.
std::uint32_t selected_collectives();

// The calls that a communicator tries with the host MPI, which may do them faster (trials.hpp).
enum class Trying : std::uint32_t {
  none,  // by default
  safe,  // UNISONO_MPI=auto: those whose results have the same bits from either side
  all,   // UNISONO_MPI=trial
};
Trying selected_trying();
// The collectives that a communicator of so many ranks tries.
std::uint32_t tried_collectives(Trying trying, int ranks);

// UNISONO_REPRODUCIBLE or UNISONO_HETEROGENEOUS: which bits Unisono's reductions give is promised,
// and the host MPI's may be others.
bool keeps_bits();

}  // namespace unisono::mpi
