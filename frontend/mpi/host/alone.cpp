// SPDX-License-Identifier: BSD-3-Clause
#include "host/alone.hpp"

#include <mutex>

#include "host/host.hpp"

namespace unisono::mpi {
namespace {

struct Alone {
  std::mutex mutex;
  Handle comm = 0;
  bool is_made = false;
};

Alone& alone() {
  static Alone* const kept = new Alone;  // never destroyed: MPI may end after static objects
  return *kept;
}

// In place of MPI_ERRORS_RETURN, whose value in the standard ABI differs between MPICH 5.0 and
// Intel MPI 2021.18.
void return_errors(Handle*, int*, ...) {}

}  // namespace

// By split: a duplicate would have the program's attributes.
bool find_alone(Handle* comm) {
  const Host& mpi = host();
  Alone& known = alone();
  const std::lock_guard lock(known.mutex);
  if (!known.is_made) {
    if (mpi.Comm_split(mpi.constants.comm_self, 0, 0, &known.comm) != 0) return false;
    known.comm = mpi.handle(known.comm);
    known.is_made = true;
    Handle handler = 0;
    if (mpi.Comm_create_errhandler(return_errors, &handler) != 0) return false;
    mpi.Comm_set_errhandler(known.comm, mpi.handle(handler));
  }
  *comm = known.comm;
  return true;
}

}  // namespace unisono::mpi
