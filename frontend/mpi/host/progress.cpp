// SPDX-License-Identifier: BSD-3-Clause
#include "host/progress.hpp"

#include <mutex>

#include "host/host.hpp"

namespace unisono::mpi {
namespace {

// A request that nothing completes before MPI_Finalize. To ask for its status makes progress in
// every MPI. A probe does not: once it finds an unexpected message, MPICH's looks no further.
struct Pending {
  std::mutex mutex;
  Handle request = 0;
  bool exists = false;
};

Pending& pending() {
  static Pending* const kept = new Pending;  // never destroyed: MPI may end after static objects
  return *kept;
}

thread_local bool is_in_host = false;

int query_nothing(void*, void*) { return 0; }
int release_nothing(void*) { return 0; }
int cancel_nothing(void*, int) { return 0; }

}  // namespace

void prepare_progress() {
  const Host& mpi = host();
  if (mpi.progress != nullptr) return;
  const std::lock_guard lock(pending().mutex);
  if (pending().exists) return;
  pending().exists = mpi.Grequest_start(query_nothing, release_nothing, cancel_nothing, nullptr,
                                        &pending().request) == 0;
}

void carry_host_on() {
  const Host& mpi = host();
  is_in_host = true;
  if (mpi.progress != nullptr) {
    mpi.progress();
  } else if (pending().exists) {
    int flag = 0;
    mpi.Request_get_status(pending().request, &flag, mpi.constants.status_ignore);
  }
  is_in_host = false;
}

bool is_carrying_host_on() { return is_in_host; }

void end_progress() {
  const Host& mpi = host();
  const std::lock_guard lock(pending().mutex);
  if (!pending().exists) return;
  pending().exists = false;
  mpi.Grequest_complete(pending().request);
  mpi.Wait(&pending().request, mpi.constants.status_ignore);
}

}  // namespace unisono::mpi
