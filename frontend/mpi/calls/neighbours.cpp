// SPDX-License-Identifier: BSD-3-Clause
#include "calls/neighbours.hpp"

#include <tuple>

#include "calls/narrowing.hpp"
#include "host/host.hpp"
#include "host/persistent_calls.hpp"
#include "log.hpp"

namespace unisono::mpi::ours {
namespace {

// A program can call a function that the host MPI lacks only because the drop-in has the name.
int refuse(const char* name) {
  log_warning("the host MPI has no such form of MPI_%s, and Unisono does not do this call", name);
  return host().constants.error_other;
}

int note(int code, const Handle* request) {
  if (code == 0) note_persistent_by_host(host().handle_at(request));
  return code;
}

template <class Narrow, class... Arguments>
int call_narrow(const char* name, Narrow* narrow, Handle comm, Arguments... arguments) {
  if (narrow == nullptr) return refuse(name);
  NeighbourNarrowing to_int = neighbour_narrowing_of(comm);
  const std::tuple narrowed{to_int(arguments)...};  // in this order, as a call's would not be
  return to_int.fits() ? std::apply(narrow, narrowed) : refuse(name);
}

}  // namespace

#define UNISONO_MPI_NARROW(name, parameters, arguments) \
  int name parameters {                                 \
    if (host().name == nullptr) return refuse(#name);   \
    return note(host().name arguments, request);        \
  }
#define UNISONO_MPI_LARGE(name, parameters, arguments)                                  \
  int name parameters {                                                                 \
    const Host& mpi = host();                                                           \
    return note(mpi.large.name != nullptr                                               \
                    ? mpi.large.name arguments                                          \
                    : call_narrow(#name, mpi.name, comm, UNISONO_MPI_UNPACK arguments), \
                request);                                                               \
  }
namespace narrow {
UNISONO_MPI_NEIGHBOURS(UNISONO_MPI_NARROW)
}  // namespace narrow
namespace large {
UNISONO_MPI_NEIGHBOURS(UNISONO_MPI_LARGE)
}  // namespace large
#undef UNISONO_MPI_LARGE
#undef UNISONO_MPI_NARROW

}  // namespace unisono::mpi::ours
