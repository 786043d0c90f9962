// SPDX-License-Identifier: BSD-3-Clause
// Entry points of the collectives with blocks of different lengths that all ranks know: each fills
// Arguments, and then runs, starts or plans them.
#include "api/launch.hpp"

namespace unisono::api {
namespace {

using schedule::Collective;

Arguments allgatherv(const char* function, const void* input, int64_t count, void* output,
                     unisono_type_t type, unisono_comm_t comm, const BlockArrays& blocks) {
  return {function, Collective::allgather, input, output, count, type, -1, 0, comm, &blocks};
}

Arguments many_to_many(const char* function, const void* input, int64_t count, void* output,
                       unisono_type_t type, unisono_comm_t comm, const BlockArrays& blocks) {
  return {function, Collective::many_to_many, input, output, count, type, -1, 0, comm, &blocks};
}

Arguments reduce_scatter(const char* function, const void* input, void* output, unisono_type_t type,
                         unisono_op_t op, unisono_comm_t comm, const BlockArrays& blocks) {
  return {function, Collective::reduce_scatter, input, output, 0, type, op, 0, comm, &blocks};
}

}  // namespace
}  // namespace unisono::api

extern "C" {

namespace api = unisono::api;

int unisono_allgatherv(const void* input, int64_t count, void* output, const int64_t counts[],
                       const int64_t displacements[], unisono_type_t type, unisono_comm_t comm) {
  const api::BlockArrays blocks{{counts, displacements}, nullptr};
  return api::run_blocks(
      api::allgatherv("unisono_allgatherv", input, count, output, type, comm, blocks));
}

int unisono_many_to_many(const void* input, int64_t count, void* output, const int64_t counts[],
                         const int64_t displacements[], const int receives[], unisono_type_t type,
                         unisono_comm_t comm) {
  const api::BlockArrays blocks{{counts, displacements}, receives};
  return api::run_blocks(
      api::many_to_many("unisono_many_to_many", input, count, output, type, comm, blocks));
}

int unisono_reduce_scatter(const void* input, void* output, const int64_t counts[],
                           unisono_type_t type, unisono_op_t op, unisono_comm_t comm) {
  const api::BlockArrays blocks{{counts, nullptr}, nullptr};
  return api::run_blocks(
      api::reduce_scatter("unisono_reduce_scatter", input, output, type, op, comm, blocks));
}

int unisono_allgatherv_start(const void* input, int64_t count, void* output, const int64_t counts[],
                             const int64_t displacements[], unisono_type_t type,
                             unisono_comm_t comm, unisono_request_t* request) {
  const api::BlockArrays blocks{{counts, displacements}, nullptr};
  return api::start(
      api::allgatherv("unisono_allgatherv_start", input, count, output, type, comm, blocks),
      request);
}

int unisono_many_to_many_start(const void* input, int64_t count, void* output,
                               const int64_t counts[], const int64_t displacements[],
                               const int receives[], unisono_type_t type, unisono_comm_t comm,
                               unisono_request_t* request) {
  const api::BlockArrays blocks{{counts, displacements}, receives};
  return api::start(
      api::many_to_many("unisono_many_to_many_start", input, count, output, type, comm, blocks),
      request);
}

int unisono_reduce_scatter_start(const void* input, void* output, const int64_t counts[],
                                 unisono_type_t type, unisono_op_t op, unisono_comm_t comm,
                                 unisono_request_t* request) {
  const api::BlockArrays blocks{{counts, nullptr}, nullptr};
  return api::start(
      api::reduce_scatter("unisono_reduce_scatter_start", input, output, type, op, comm, blocks),
      request);
}

int unisono_allgatherv_plan(const void* input, int64_t count, void* output, const int64_t counts[],
                            const int64_t displacements[], unisono_type_t type, unisono_comm_t comm,
                            unisono_plan_t* plan) {
  const api::BlockArrays blocks{{counts, displacements}, nullptr};
  return api::make_plan(
      api::allgatherv("unisono_allgatherv_plan", input, count, output, type, comm, blocks), plan);
}

int unisono_many_to_many_plan(const void* input, int64_t count, void* output,
                              const int64_t counts[], const int64_t displacements[],
                              const int receives[], unisono_type_t type, unisono_comm_t comm,
                              unisono_plan_t* plan) {
  const api::BlockArrays blocks{{counts, displacements}, receives};
  return api::make_plan(
      api::many_to_many("unisono_many_to_many_plan", input, count, output, type, comm, blocks),
      plan);
}

int unisono_reduce_scatter_plan(const void* input, void* output, const int64_t counts[],
                                unisono_type_t type, unisono_op_t op, unisono_comm_t comm,
                                unisono_plan_t* plan) {
  const api::BlockArrays blocks{{counts, nullptr}, nullptr};
  return api::make_plan(
      api::reduce_scatter("unisono_reduce_scatter_plan", input, output, type, op, comm, blocks),
      plan);
}

}  // extern "C"
