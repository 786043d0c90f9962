// SPDX-License-Identifier: BSD-3-Clause
// Persistent collectives by Unisono. The program holds a persistent request of its MPI, the
// carrier: a receive of nothing from this rank itself. Each start starts it and the collective; at
// the collective's end a message to itself completes it. So it mixes with all other requests, and
// is inactive when the standard says so. The host's completion functions let the calls go on
// (requests.hpp).
//
// The standard lets ranks start their persistent collectives in different orders. So each one has a
// Unisono communicator of its own, made at its initialization, which is collective and may wait.
#pragma once

#include <memory>
#include <optional>

#include "host/functions.hpp"

namespace unisono::mpi {

class Call;
struct Communicator;

// Makes the request, if all ranks can. False: the host MPI has to do it. `can`: this rank can.
bool make_persistent(Communicator& own, std::unique_ptr<Call> call, bool can, Handle* request);

// Whether there are any: one load.
bool has_persistent();
// Starts it. False: the request is not of this kind. `error` is an MPI error code.
bool start_persistent(Handle* request, int* error);
// Whether its call has not ended; nullopt: the request is not of this kind.
std::optional<bool> is_persistent_active(Handle request);
// Before the host frees the request.
void forget_persistent(Handle request);
// After the host has completed the request: reports the error of its call, if it has one, and gives
// the MPI error code. 0: none.
int report_failed_persistent(Handle request);

}  // namespace unisono::mpi
