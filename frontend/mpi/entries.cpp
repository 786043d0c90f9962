// SPDX-License-Identifier: BSD-3-Clause
// The symbols that the drop-in interposes: each collective, blocking and nonblocking, as MPI_X and
// as PMPI_X, for Open MPI's wrappers for Fortran call the one and MPICH's the other. If a profiling
// tool defines MPI_X behind the drop-in, MPI_X goes to the tool, which calls PMPI_X. Calls from the
// host MPI's own code go straight back to it. Nothing is thrown into the program. Any thread.
#include <exception>

#include "collectives.hpp"
#include "communicator.hpp"
#include "host/host.hpp"
#include "log.hpp"

namespace unisono::mpi {
namespace {

// The call as Unisono's, unless the host's own code makes it.
template <class Ours, class... Arguments>
int dispatch(const void* caller, Ours* ours, Ours* by_host, Arguments... arguments) noexcept try {
  if (host().is_own_code(caller)) return by_host(arguments...);
  return ours(arguments...);
} catch (const std::exception& thrown) {
  log_warning("a collective ran out of memory: %s", thrown.what());
  return host().constants.error_no_mem;
}

}  // namespace
}  // namespace unisono::mpi

extern "C" {

// NOLINTBEGIN: MPI's names
// `parameters` and `arguments` are in parentheses.
#define UNISONO_MPI_ONE_ENTRY(name, parameters, arguments)                                    \
  __attribute__((visibility("default"))) int PMPI_##name parameters {                         \
    using namespace unisono::mpi;                                                             \
    return dispatch(__builtin_return_address(0), ours::name, host().name,                     \
                    UNISONO_MPI_UNPACK arguments);                                            \
  }                                                                                           \
  __attribute__((visibility("default"))) int MPI_##name parameters {                          \
    using namespace unisono::mpi;                                                             \
    static const auto tool = reinterpret_cast<decltype(Host::name)>(find_tool("MPI_" #name)); \
    if (tool != nullptr) return tool arguments;                                               \
    return dispatch(__builtin_return_address(0), ours::name, host().name,                     \
                    UNISONO_MPI_UNPACK arguments);                                            \
  }
#define UNISONO_MPI_ENTRY(name, nonblocking, parameters, arguments)                     \
  UNISONO_MPI_ONE_ENTRY(name, parameters, arguments)                                    \
  UNISONO_MPI_ONE_ENTRY(nonblocking, (UNISONO_MPI_UNPACK parameters, Handle * request), \
                        (UNISONO_MPI_UNPACK arguments, request))

using unisono::mpi::Handle;
UNISONO_MPI_COLLECTIVES(UNISONO_MPI_ENTRY)

__attribute__((visibility("default"))) int PMPI_Finalize() {
  unisono::mpi::end_communicators();
  return unisono::mpi::host().Finalize();
}
__attribute__((visibility("default"))) int MPI_Finalize() {
  using namespace unisono::mpi;
  static const auto tool = reinterpret_cast<decltype(Host::Finalize)>(find_tool("MPI_Finalize"));
  return tool != nullptr ? tool() : PMPI_Finalize();
}
// NOLINTEND

}  // extern "C"
