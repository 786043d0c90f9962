// SPDX-License-Identifier: BSD-3-Clause
// The symbols that the drop-in interposes: each collective, blocking, nonblocking and persistent,
// with ints and with large counts, the functions on requests, and those that begin and end MPI or
// end a communicator. Each is there as MPI_X and as PMPI_X, for Open MPI's wrappers for Fortran
// call the one and MPICH's the other. If a profiling tool defines MPI_X behind the drop-in, MPI_X
// goes to the tool, which calls PMPI_X. Calls from the host MPI's own code go straight back to it.
// Of exceptions, only the program's own pass: those that its error handlers throw. Any thread.
#include <exception>
#include <string>

#include "calls/neighbours.hpp"
#include "collectives.hpp"
#include "communicator.hpp"
#include "host/host.hpp"
#include "host/probes.hpp"
#include "host/thrown.hpp"
#include "host/world.hpp"
#include "library.hpp"
#include "log.hpp"
#include "requests.hpp"

namespace unisono::mpi {
namespace {

// The call as Unisono's, unless the host's own code makes it. `ours` guards itself. In place: many
// arguments would be copied on the stack once more.
template <class Ours, class ByHost, class... Arguments>
[[gnu::always_inline]] inline int dispatch(const void* caller, Ours* ours, ByHost* by_host,
                                           Arguments... arguments) {
  return host().is_own_code(caller) ? by_host(arguments...) : ours(arguments...);
}

// The same where `ours` does not guard itself.
template <class Ours, class ByHost, class... Arguments>
int dispatch_guarded(const void* caller, Ours* ours, ByHost* by_host, Arguments... arguments) try {
  return dispatch(caller, ours, by_host, arguments...);
} catch (const std::exception& thrown) {
  if (!is_own(thrown)) throw;
  return report_error(host().constants.comm_world, UNISONO_ERROR_RESOURCES,
                      std::string("an MPI call of this rank ran out of memory: ") + thrown.what());
}

}  // namespace

namespace life {
namespace {

int note_begin(int code) {
  if (note_init(code) == 0) prepare_end();
  return code;
}

int Init(int* count, char*** words) { return note_begin(host().Init(count, words)); }

int Init_thread(int* count, char*** words, int wanted, int* given) {
  return note_begin(host().Init_thread(count, words, wanted, given));
}

int Comm_free(Handle* comm) {
  const int code = host().Comm_free(comm);
  forget_last_used();
  return code;
}

int Comm_disconnect(Handle* comm) {
  const int code = host().Comm_disconnect(comm);
  forget_last_used();
  return code;
}

int Abort(Handle comm, int code) {
  save_profile();
  return host().Abort(comm, code);
}

int Finalize() {
  end_before_host();
  const int code = host().Finalize();
  end_communicators();  // MPICH 5 deletes no attributes here while a session is open
  return code;
}

}  // namespace
}  // namespace life
}  // namespace unisono::mpi

// NOLINTBEGIN: MPI's names
// One function: whether it is guarded here, the program's name for it, ours, the host's.
// `parameters` and `arguments` are in parentheses. Open MPI 4.1 has extensions that begin with
// MPIX_.
#define UNISONO_MPI_ENTRY_OF(guard, prefix, symbol, ours_function, host_function, parameters, \
                             arguments)                                                       \
  extern "C" __attribute__((visibility("default"))) int P##prefix##symbol parameters {        \
    using namespace unisono::mpi;                                                             \
    return guard(__builtin_return_address(0), ours_function, host_function,                   \
                 UNISONO_MPI_UNPACK arguments);                                               \
  }                                                                                           \
  extern "C" __attribute__((visibility("default"))) int prefix##symbol parameters {           \
    using namespace unisono::mpi;                                                             \
    static const auto tool =                                                                  \
        reinterpret_cast<decltype(&P##prefix##symbol)>(find_tool(#prefix #symbol));           \
    if (tool != nullptr) return tool arguments;                                               \
    return guard(__builtin_return_address(0), ours_function, host_function,                   \
                 UNISONO_MPI_UNPACK arguments);                                               \
  }
#define UNISONO_MPI_ENTRY(name, nonblocking, parameters, arguments)                           \
  UNISONO_MPI_ENTRY_OF(dispatch, MPI_, name, ours::narrow::name, host().name, parameters,     \
                       arguments)                                                             \
  UNISONO_MPI_ENTRY_OF(dispatch_guarded, MPI_, nonblocking, ours::narrow::nonblocking,        \
                       host().nonblocking, (UNISONO_MPI_UNPACK parameters, Handle * request), \
                       (UNISONO_MPI_UNPACK arguments, request))                               \
  UNISONO_MPI_ENTRY_OF(dispatch_guarded, MPI_, name##_init, ours::narrow::name##_init,        \
                       host().name##_init,                                                    \
                       (UNISONO_MPI_UNPACK parameters, Handle info, Handle * request),        \
                       (UNISONO_MPI_UNPACK arguments, info, request))                         \
  UNISONO_MPI_ENTRY_OF(dispatch_guarded, MPIX_, name##_init, ours::narrow::name##_init,       \
                       host().name##_init,                                                    \
                       (UNISONO_MPI_UNPACK parameters, Handle info, Handle * request),        \
                       (UNISONO_MPI_UNPACK arguments, info, request))
#define UNISONO_MPI_LARGE_ENTRY(name, nonblocking, parameters, arguments)                          \
  UNISONO_MPI_ENTRY_OF(dispatch, MPI_, name##_c, ours::large::name, host().large.name, parameters, \
                       arguments)                                                                  \
  UNISONO_MPI_ENTRY_OF(                                                                            \
      dispatch_guarded, MPI_, nonblocking##_c, ours::large::nonblocking, host().large.nonblocking, \
      (UNISONO_MPI_UNPACK parameters, Handle * request), (UNISONO_MPI_UNPACK arguments, request))  \
  UNISONO_MPI_ENTRY_OF(dispatch_guarded, MPI_, name##_init_c, ours::large::name##_init,            \
                       host().large.name##_init,                                                   \
                       (UNISONO_MPI_UNPACK parameters, Handle info, Handle * request),             \
                       (UNISONO_MPI_UNPACK arguments, info, request))
#define UNISONO_MPI_REQUEST_ENTRY(name, parameters, arguments) \
  UNISONO_MPI_ENTRY_OF(dispatch_guarded, MPI_, name, ours::name, host().name, parameters, arguments)
#define UNISONO_MPI_NEIGHBOUR_ENTRY(name, parameters, arguments)                                   \
  UNISONO_MPI_ENTRY_OF(dispatch_guarded, MPI_, name, ours::narrow::name, host().name, parameters,  \
                       arguments)                                                                  \
  UNISONO_MPI_ENTRY_OF(dispatch_guarded, MPIX_, name, ours::narrow::name, host().name, parameters, \
                       arguments)
#define UNISONO_MPI_LARGE_NEIGHBOUR_ENTRY(name, parameters, arguments)                         \
  UNISONO_MPI_ENTRY_OF(dispatch_guarded, MPI_, name##_c, ours::large::name, host().large.name, \
                       parameters, arguments)

namespace narrow {
using unisono::mpi::Handle;
using Count = int;
using Offset = int;
UNISONO_MPI_COLLECTIVES(UNISONO_MPI_ENTRY)
UNISONO_MPI_NEIGHBOURS(UNISONO_MPI_NEIGHBOUR_ENTRY)
UNISONO_MPI_REQUESTS(UNISONO_MPI_REQUEST_ENTRY)
UNISONO_MPI_LATER_REQUESTS(UNISONO_MPI_REQUEST_ENTRY)
UNISONO_MPI_PROBES(UNISONO_MPI_REQUEST_ENTRY)
}  // namespace narrow
namespace large {
using unisono::mpi::Handle;
using Count = std::int64_t;
using Offset = std::ptrdiff_t;
UNISONO_MPI_COUNTED(UNISONO_MPI_LARGE_ENTRY)
UNISONO_MPI_NEIGHBOURS(UNISONO_MPI_LARGE_NEIGHBOUR_ENTRY)
}  // namespace large

// The begin and the end of MPI and of communicators, whoever calls it.
#define UNISONO_MPI_LIFE_ENTRY(name, parameters, arguments)                              \
  extern "C" __attribute__((visibility("default"))) int PMPI_##name parameters {         \
    return unisono::mpi::life::name arguments;                                           \
  }                                                                                      \
  extern "C" __attribute__((visibility("default"))) int MPI_##name parameters {          \
    static const auto tool =                                                             \
        reinterpret_cast<decltype(&PMPI_##name)>(unisono::mpi::find_tool("MPI_" #name)); \
    return (tool != nullptr ? tool : PMPI_##name) arguments;                             \
  }
UNISONO_MPI_LIFE_ENTRY(Init, (int* count, char*** words), (count, words))
UNISONO_MPI_LIFE_ENTRY(Init_thread, (int* count, char*** words, int wanted, int* given),
                       (count, words, wanted, given))
UNISONO_MPI_LIFE_ENTRY(Comm_free, (unisono::mpi::Handle * comm), (comm))
UNISONO_MPI_LIFE_ENTRY(Comm_disconnect, (unisono::mpi::Handle * comm), (comm))
UNISONO_MPI_LIFE_ENTRY(Abort, (unisono::mpi::Handle comm, int code), (comm, code))
UNISONO_MPI_LIFE_ENTRY(Finalize, (), ())
// NOLINTEND
