// SPDX-License-Identifier: BSD-3-Clause
#include "host/world.hpp"

#include <atomic>

#include "host/host.hpp"

namespace unisono::mpi {
namespace {

// Intel MPI says after a first session, too, that MPI is initialized.
std::atomic<bool> is_init_called{false};

}  // namespace

int note_init(int error) {
  if (error == 0) is_init_called = true;
  return error;
}

bool has_world() {
  const Host& mpi = host();
  if (mpi.has_sessions && !is_init_called) return false;
  int initialized = 0, finalized = 0;
  mpi.Initialized(&initialized);
  mpi.Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

bool is_of_threads(Handle comm) {
  const Host& mpi = host();
  int flag = 0;
  return mpi.test_threads != nullptr && mpi.test_threads(comm, &flag) == 0 && flag != 0;
}

}  // namespace unisono::mpi
