// SPDX-License-Identifier: BSD-3-Clause
#include "host/sessions.hpp"

#include <atomic>

#include "host/host.hpp"
#include "log.hpp"

namespace unisono::mpi {
namespace {

// Intel MPI says after a first session that MPI is initialized, and then refuses MPI_Init.
std::atomic<bool> is_by_session{false};

bool is_initialized() {
  int initialized = 0;
  host().Initialized(&initialized);
  return initialized != 0;
}

}  // namespace

int start_session(Handle info, Handle error_handler, Handle* session) {
  const Host& mpi = host();
  if (mpi.Session_init == nullptr) {
    log_warning("the host MPI has no MPI_Session_init");
    return mpi.constants.error_other;
  }
  const bool was_initialized = is_initialized();
  const int error = mpi.Session_init(info, error_handler, session);
  if (error == 0 && !was_initialized && is_initialized()) is_by_session = true;
  return error;
}

bool has_world() {
  int finalized = 0;
  host().Finalized(&finalized);
  return is_initialized() && finalized == 0 && !is_by_session;
}

}  // namespace unisono::mpi
