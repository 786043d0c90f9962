// SPDX-License-Identifier: BSD-3-Clause
#include "random/issue.hpp"

#include "random/types.hpp"

namespace unisono::test::programs {
namespace {

template <class T>
const T* array(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

// The blocking function, the one that starts, and the one that plans.
#define UNISONO_TEST_FORMS(name) unisono_##name, unisono_##name##_start, unisono_##name##_plan

}  // namespace

int issue(Form form, const Call& call, const Arguments& a, unisono_comm_t comm, Handles& handles) {
  const unisono_type_t type = OwnKinds::get().type(call.type);
  const unisono_op_t op = OwnKinds::get().op(call.op);
  const int root = call.root;
  const auto by = [&](auto blocking, auto start, auto plan, auto... arguments) {
    if (form == Form::blocking) return blocking(arguments..., comm);
    if (form == Form::started) return start(arguments..., comm, &handles.request);
    return plan(arguments..., comm, &handles.plan);
  };
  const auto* in_counts = array(a.input_counts);
  const auto* in_places = array(a.input_places);
  const auto* out_counts = array(a.output_counts);
  const auto* out_places = array(a.output_places);
  switch (call.function) {
    case Function::barrier:
      return by(UNISONO_TEST_FORMS(barrier));
    case Function::broadcast:
      return by(UNISONO_TEST_FORMS(broadcast), a.output, a.count, type, root);
    case Function::reduce:
      return by(UNISONO_TEST_FORMS(reduce), a.input, a.output, a.count, type, op, root);
    case Function::allreduce:
      return by(UNISONO_TEST_FORMS(allreduce), a.input, a.output, a.count, type, op);
    case Function::allgather:
      return by(UNISONO_TEST_FORMS(allgather), a.input, a.output, a.count, type);
    case Function::gather:
      return by(UNISONO_TEST_FORMS(gather), a.input, a.output, a.count, type, root);
    case Function::scatter:
      return by(UNISONO_TEST_FORMS(scatter), a.input, a.output, a.count, type, root);
    case Function::alltoall:
      return by(UNISONO_TEST_FORMS(alltoall), a.input, a.output, a.count, type);
    case Function::reduce_scatter_block:
      return by(UNISONO_TEST_FORMS(reduce_scatter_block), a.input, a.output, a.count, type, op);
    case Function::scan:
      return by(UNISONO_TEST_FORMS(scan), a.input, a.output, a.count, type, op);
    case Function::exscan:
      return by(UNISONO_TEST_FORMS(exscan), a.input, a.output, a.count, type, op);
    case Function::allgatherv:
      return by(UNISONO_TEST_FORMS(allgatherv), a.input, a.count, a.output, out_counts, out_places,
                type);
    case Function::many_to_many:
      return by(UNISONO_TEST_FORMS(many_to_many), a.input, a.count, a.output, out_counts,
                out_places, array(a.receives), type);
    case Function::reduce_scatter:
      return by(UNISONO_TEST_FORMS(reduce_scatter), a.input, a.output, out_counts, type, op);
    case Function::gatherv:
      return by(UNISONO_TEST_FORMS(gatherv), a.input, a.count, a.output, out_counts, out_places,
                type, root);
    case Function::scatterv:
      return by(UNISONO_TEST_FORMS(scatterv), a.input, in_counts, in_places, a.output, a.count,
                type, root);
    case Function::alltoallv:
      return by(UNISONO_TEST_FORMS(alltoallv), a.input, in_counts, in_places, a.output, out_counts,
                out_places, type);
    case Function::alltoallw:
      return by(UNISONO_TEST_FORMS(alltoallw), a.input, in_counts, in_places, array(a.input_types),
                a.output, out_counts, out_places, array(a.output_types));
  }
  return UNISONO_ERROR_ARGUMENT;
}

}  // namespace unisono::test::programs
