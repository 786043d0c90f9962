// SPDX-License-Identifier: BSD-3-Clause
#include "collectives.hpp"

#include <tuple>

#include "communicator.hpp"
#include "host/host.hpp"
#include "moves.hpp"
#include "reductions.hpp"

namespace unisono::mpi::ours {
namespace {

// MPI's parameters end with the communicator.
template <class... Arguments>
Handle communicator_of(Arguments... arguments) {
  return std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...));
}

template <class Kind, class... Arguments>
int run(Collective collective, int (*by_host)(Arguments...), Arguments... arguments) {
  const Communicator* const own = find_communicator(communicator_of(arguments...), collective);
  Kind call;
  if (own == nullptr || !call.take(*own, arguments...)) return by_host(arguments...);
  if (const int error = call.load(); error != 0) return error;
  const int error = call.call(*own, nullptr);
  return error == UNISONO_OK ? call.finish() : report_error(*own, error);
}

}  // namespace

#define UNISONO_MPI_UNPACK(...) __VA_ARGS__
#define UNISONO_MPI_DEFINE(name, parameters, arguments)                                  \
  int name parameters {                                                                  \
    return run<name##Call>(Collective::name, host().name, UNISONO_MPI_UNPACK arguments); \
  }
UNISONO_MPI_COLLECTIVES(UNISONO_MPI_DEFINE)
#undef UNISONO_MPI_DEFINE
#undef UNISONO_MPI_UNPACK

}  // namespace unisono::mpi::ours
