// SPDX-License-Identifier: BSD-3-Clause
// The requests of persistent collectives that the host MPI does. MPICH's MPI_Testall ends programs
// that pass it such a request, and MPICH 4.0's MPI_Waitany and MPI_Waitsome complete one again and
// again. So the drop-in completes each of them by itself (requests.cpp), and keeps its stage. A
// handle stays known until MPI_Request_free, the only function that frees such a request. Any
// thread.
#pragma once

#include <cstdint>
#include <optional>

#include "host/functions.hpp"

namespace unisono::mpi {

// `ended`: to the host it is inactive, but the program has not completed it.
enum class Stage : std::uint8_t { inactive, active, ended };

// After the host has made the request. Nothing where the drop-in needs no MPI_Testall.
void note_persistent_by_host(Handle request);
// Whether there are any: one load.
bool has_persistent_by_host();
bool is_persistent_by_host(Handle request);
// After the host has started the request.
void note_start_by_host(Handle request);
// Its stage. Lets the host complete an active one. nullopt: it is none of these requests.
std::optional<Stage> look_at_persistent_by_host(Handle request);
// The program completes an ended one. The host's MPI error code.
int take_ended_by_host(Handle request);
// Before the host frees the request: another thread may get its handle at once.
void forget_persistent_by_host(Handle request);

}  // namespace unisono::mpi
