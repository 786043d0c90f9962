// SPDX-License-Identifier: BSD-3-Clause
#include "host/probes.hpp"

#include "host/host.hpp"

namespace unisono::mpi {

int most_turns() {
  constexpr int kByOne = 64, kByMany = 3;
  return host().progress != nullptr ? kByMany : kByOne;
}

}  // namespace unisono::mpi

namespace unisono::mpi::ours {

#define UNISONO_MPI_PROBE(name, parameters, arguments)                                             \
  int name parameters {                                                                            \
    return look_after_collective(flag, [&] { return host().name(UNISONO_MPI_UNPACK arguments); }); \
  }
UNISONO_MPI_PROBES(UNISONO_MPI_PROBE)
#undef UNISONO_MPI_PROBE

}  // namespace unisono::mpi::ours
