// SPDX-License-Identifier: BSD-3-Clause
// Functions that look whether something has come, such as MPI_Iprobe. In a collective of its own
// the host MPI receives what was sent before it. Programs rely on that: a message that was sent
// before a barrier is found by one look after it. In a collective of Unisono the host MPI may have
// received nothing. So the first look in vain after one lets the host MPI progress. Any thread.
#pragma once

#include <atomic>

#include "host/functions.hpp"
#include "host/progress.hpp"

namespace unisono::mpi {

// Whether Unisono has ended a collective since the last look. Races may lose one; harmless.
inline std::atomic<bool> has_synchronized{false};

inline void note_collective() { has_synchronized.store(true, std::memory_order_relaxed); }

// The turns of the host's progress until all messages from before the collective have come. MPICH
// receives one message a turn. Open MPI receives 31, and yields the core in a turn without any, so
// more turns would slow down programs that look between collectives.
int most_turns();

// `look` sets a flag, and gives an MPI error code.
template <class Look>
int look_after_collective(const int* flag, const Look& look) {
  const int error = look();
  if (error != 0 || flag == nullptr || *flag != 0) return error;
  if (!has_synchronized.load(std::memory_order_relaxed) || is_carrying_host_on()) return error;
  has_synchronized.store(false, std::memory_order_relaxed);
  const int turns = most_turns();
  for (int i = 0; i < turns; ++i) {
    carry_host_on();
    const int again = look();
    if (again != 0 || *flag != 0) return again;
  }
  return 0;
}

namespace ours {

#define UNISONO_MPI_DECLARE(name, parameters, ...) int name parameters;
UNISONO_MPI_PROBES(UNISONO_MPI_DECLARE)
#undef UNISONO_MPI_DECLARE

}  // namespace ours
}  // namespace unisono::mpi
