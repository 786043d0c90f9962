// SPDX-License-Identifier: BSD-3-Clause
#include "call.hpp"

#include "numpy/ndarray.hpp"

namespace unisono::python {
namespace {

namespace nb = nanobind;

// Calls `invoke` with the library's three functions for the collective, and their arguments.
template <class Invoke>
int with_functions(const Call& c, unisono_comm_t comm, const Invoke& invoke) {
#define UNISONO_FUNCTIONS(name) unisono_##name, unisono_##name##_start, unisono_##name##_plan
  const std::int64_t* const in_counts = c.input_blocks.counts.data();
  const std::int64_t* const in_places = c.input_blocks.displacements_or_null();
  const std::int64_t* const out_counts = c.output_blocks.counts.data();
  const std::int64_t* const out_places = c.output_blocks.displacements_or_null();
  switch (c.collective) {
    case Collective::barrier:
      return invoke(UNISONO_FUNCTIONS(barrier), comm);
    case Collective::broadcast:
      return invoke(UNISONO_FUNCTIONS(broadcast), c.output, c.count, c.type, c.root, comm);
    case Collective::reduce:
      return invoke(UNISONO_FUNCTIONS(reduce), c.input, c.output, c.count, c.type, c.op.op, c.root,
                    comm);
    case Collective::allreduce:
      return invoke(UNISONO_FUNCTIONS(allreduce), c.input, c.output, c.count, c.type, c.op.op,
                    comm);
    case Collective::allgather:
      return invoke(UNISONO_FUNCTIONS(allgather), c.input, c.output, c.count, c.type, comm);
    case Collective::gather:
      return invoke(UNISONO_FUNCTIONS(gather), c.input, c.output, c.count, c.type, c.root, comm);
    case Collective::scatter:
      return invoke(UNISONO_FUNCTIONS(scatter), c.input, c.output, c.count, c.type, c.root, comm);
    case Collective::alltoall:
      return invoke(UNISONO_FUNCTIONS(alltoall), c.input, c.output, c.count, c.type, comm);
    case Collective::reduce_scatter_block:
      return invoke(UNISONO_FUNCTIONS(reduce_scatter_block), c.input, c.output, c.count, c.type,
                    c.op.op, comm);
    case Collective::scan:
      return invoke(UNISONO_FUNCTIONS(scan), c.input, c.output, c.count, c.type, c.op.op, comm);
    case Collective::exscan:
      return invoke(UNISONO_FUNCTIONS(exscan), c.input, c.output, c.count, c.type, c.op.op, comm);
    case Collective::allgatherv:
      return invoke(UNISONO_FUNCTIONS(allgatherv), c.input, c.count, c.output, out_counts,
                    out_places, c.type, comm);
    case Collective::many_to_many:
      return invoke(UNISONO_FUNCTIONS(many_to_many), c.input, c.count, c.output, out_counts,
                    out_places, c.receives.empty() ? nullptr : c.receives.data(), c.type, comm);
    case Collective::reduce_scatter:
      return invoke(UNISONO_FUNCTIONS(reduce_scatter), c.input, c.output, out_counts, c.type,
                    c.op.op, comm);
    case Collective::gatherv:
      return invoke(UNISONO_FUNCTIONS(gatherv), c.input, c.count, c.output, out_counts, out_places,
                    c.type, c.root, comm);
    case Collective::scatterv:
      return invoke(UNISONO_FUNCTIONS(scatterv), c.input, in_counts, in_places, c.output, c.count,
                    c.type, c.root, comm);
    case Collective::alltoallv:
      return invoke(UNISONO_FUNCTIONS(alltoallv), c.input, in_counts, in_places, c.output,
                    out_counts, out_places, c.type, comm);
    case Collective::alltoallw:
      return invoke(UNISONO_FUNCTIONS(alltoallw), c.input, in_counts, in_places,
                    c.input_blocks.types.data(), c.output, out_counts, out_places,
                    c.output_blocks.types.data(), comm);
  }
  return UNISONO_ERROR_UNSUPPORTED;
#undef UNISONO_FUNCTIONS
}

}  // namespace

int Call::run() const {
  return with_functions(*this, comm.handle(), [](auto function, auto, auto, auto... arguments) {
    return function(arguments...);
  });
}

int Call::start(unisono_request_t* request) const {
  return with_functions(*this, comm.handle(),
                        [request](auto, auto function, auto, auto... arguments) {
                          return function(arguments..., request);
                        });
}

int Call::plan(unisono_plan_t* plan) const {
  return with_functions(*this, comm.handle(), [plan](auto, auto, auto function, auto... arguments) {
    return function(arguments..., plan);
  });
}

nb::object result_of(Call& call) {
  if (call.send.is_number() && !call.result.is_none() && nb::hasattr(call.result, "ndim") &&
      nb::cast<int>(call.result.attr("ndim")) == 0) {
    // The scalars of NumPy keep their type. A broadcast's root has its own.
    if (is_numpy_scalar(call.result)) return call.result;
    if (call.send.is_of_numpy()) return call.result[nb::tuple()];
    return call.result.attr("item")();
  }
  return call.result;
}

}  // namespace unisono::python
