// SPDX-License-Identifier: BSD-3-Clause
#include "collectives.hpp"

#include <memory>
#include <tuple>
#include <utility>

#include "calls/moves.hpp"
#include "calls/reductions.hpp"
#include "communicator.hpp"
#include "host/host.hpp"
#include "library.hpp"

namespace unisono::mpi::ours {
namespace {

// MPI's parameters end with the communicator.
template <class... Arguments>
Handle communicator_of(Arguments... arguments) {
  return std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...));
}

template <class Kind, class... Arguments>
int run(Collective collective, int (*by_host)(Arguments...), Arguments... arguments) {
  Communicator* const own = find_communicator(communicator_of(arguments...), collective);
  Kind call;
  if (own == nullptr || !call.take(*own, arguments...)) return by_host(arguments...);
  if (const int error = call.load(); error != 0) return error;
  const PendingCalls::Turn turn(own->pending);
  const int error = call.call(*own, nullptr);
  return error == UNISONO_OK ? call.finish() : report_error(*own, error, library().last_error());
}

template <class Kind, class ByHost, class... Arguments>
int start(Collective collective, ByHost by_host, Handle* request, Arguments... arguments) {
  Communicator* const own = find_made_communicator(communicator_of(arguments...), collective);
  if (own == nullptr || !has_nonblocking()) return by_host(arguments..., request);
  auto call = std::make_unique<Kind>();
  if (!call->take(*own, arguments...) || !call->may_start()) return by_host(arguments..., request);
  if (const int error = call->keep(); error != 0) return error;
  if (const int error = call->load(); error != 0) return error;
  return own->pending.start(*own, std::move(call), request);
}

}  // namespace

#define UNISONO_MPI_DEFINE(name, nonblocking, parameters, arguments)                     \
  int name parameters {                                                                  \
    return run<name##Call>(Collective::name, host().name, UNISONO_MPI_UNPACK arguments); \
  }                                                                                      \
  int nonblocking(UNISONO_MPI_UNPACK parameters, Handle* request) {                      \
    return start<name##Call>(Collective::name, host().nonblocking, request,              \
                             UNISONO_MPI_UNPACK arguments);                              \
  }
UNISONO_MPI_COLLECTIVES(UNISONO_MPI_DEFINE)
#undef UNISONO_MPI_DEFINE

}  // namespace unisono::mpi::ours
