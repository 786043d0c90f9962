// SPDX-License-Identifier: BSD-3-Clause
#include "host/world.hpp"

#include <array>
#include <atomic>
#include <cstddef>

#include "host/alone.hpp"
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

// By two receives that nobody starts.
bool has_requests_of_world(Handle comm) {
  const Host& mpi = host();
  if (mpi.have_one_instance == nullptr) return true;
  std::array<Handle, 2> comms{0, comm};
  if (!find_alone(comms.data())) return false;
  std::array<Handle, 2> requests{};
  std::size_t made = 0;
  while (made < requests.size() &&
         mpi.Recv_init(nullptr, 0, mpi.constants.byte, 0, 0, comms[made], &requests[made]) == 0) {
    ++made;
  }
  const bool are_alike = made == requests.size() &&
                         mpi.have_one_instance(requests.data(), static_cast<int>(requests.size()));
  for (std::size_t i = 0; i < made; ++i) mpi.Request_free(&requests[i]);
  return are_alike;
}

bool may_revoke() {
  const Host& mpi = host();
  return mpi.test_revoked != nullptr && mpi.is_fault_tolerant != nullptr && *mpi.is_fault_tolerant;
}

bool is_revoked(Handle comm) {
  int flag = 0;
  return may_revoke() && host().test_revoked(comm, &flag) == 0 && flag != 0;
}

}  // namespace unisono::mpi
