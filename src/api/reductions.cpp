// SPDX-License-Identifier: BSD-3-Clause
// Entry points of the collectives that reduce, with equal blocks: each fills Arguments, and then
// runs, starts or plans them.
#include "api/launch.hpp"

namespace unisono::api {
namespace {

using schedule::Collective;

Arguments reduce(const char* function, const void* input, void* output, int64_t count,
                 unisono_type_t type, unisono_op_t op, int root, unisono_comm_t comm) {
  return {function, Collective::reduce, input, output, count, type, op, root, comm};
}

Arguments allreduce(const char* function, const void* input, void* output, int64_t count,
                    unisono_type_t type, unisono_op_t op, unisono_comm_t comm) {
  return {function, Collective::allreduce, input, output, count, type, op, 0, comm};
}

Arguments reduce_scatter_block(const char* function, const void* input, void* output, int64_t count,
                               unisono_type_t type, unisono_op_t op, unisono_comm_t comm) {
  return {function, Collective::reduce_scatter, input, output, count, type, op, 0, comm};
}

Arguments scan(const char* function, const void* input, void* output, int64_t count,
               unisono_type_t type, unisono_op_t op, unisono_comm_t comm) {
  return {function, Collective::scan, input, output, count, type, op, 0, comm};
}

Arguments exscan(const char* function, const void* input, void* output, int64_t count,
                 unisono_type_t type, unisono_op_t op, unisono_comm_t comm) {
  return {function, Collective::exscan, input, output, count, type, op, 0, comm};
}

}  // namespace
}  // namespace unisono::api

extern "C" {

namespace api = unisono::api;

int unisono_reduce(const void* input, void* output, int64_t count, unisono_type_t type,
                   unisono_op_t op, int root, unisono_comm_t comm) {
  return api::run(api::reduce("unisono_reduce", input, output, count, type, op, root, comm));
}

int unisono_allreduce(const void* input, void* output, int64_t count, unisono_type_t type,
                      unisono_op_t op, unisono_comm_t comm) {
  return api::run(api::allreduce("unisono_allreduce", input, output, count, type, op, comm));
}

int unisono_reduce_scatter_block(const void* input, void* output, int64_t count,
                                 unisono_type_t type, unisono_op_t op, unisono_comm_t comm) {
  return api::run(api::reduce_scatter_block("unisono_reduce_scatter_block", input, output, count,
                                            type, op, comm));
}

int unisono_scan(const void* input, void* output, int64_t count, unisono_type_t type,
                 unisono_op_t op, unisono_comm_t comm) {
  return api::run(api::scan("unisono_scan", input, output, count, type, op, comm));
}

int unisono_exscan(const void* input, void* output, int64_t count, unisono_type_t type,
                   unisono_op_t op, unisono_comm_t comm) {
  return api::run(api::exscan("unisono_exscan", input, output, count, type, op, comm));
}

int unisono_reduce_start(const void* input, void* output, int64_t count, unisono_type_t type,
                         unisono_op_t op, int root, unisono_comm_t comm,
                         unisono_request_t* request) {
  return api::start(api::reduce("unisono_reduce_start", input, output, count, type, op, root, comm),
                    request);
}

int unisono_allreduce_start(const void* input, void* output, int64_t count, unisono_type_t type,
                            unisono_op_t op, unisono_comm_t comm, unisono_request_t* request) {
  return api::start(api::allreduce("unisono_allreduce_start", input, output, count, type, op, comm),
                    request);
}

int unisono_reduce_scatter_block_start(const void* input, void* output, int64_t count,
                                       unisono_type_t type, unisono_op_t op, unisono_comm_t comm,
                                       unisono_request_t* request) {
  return api::start(api::reduce_scatter_block("unisono_reduce_scatter_block_start", input, output,
                                              count, type, op, comm),
                    request);
}

int unisono_scan_start(const void* input, void* output, int64_t count, unisono_type_t type,
                       unisono_op_t op, unisono_comm_t comm, unisono_request_t* request) {
  return api::start(api::scan("unisono_scan_start", input, output, count, type, op, comm), request);
}

int unisono_exscan_start(const void* input, void* output, int64_t count, unisono_type_t type,
                         unisono_op_t op, unisono_comm_t comm, unisono_request_t* request) {
  return api::start(api::exscan("unisono_exscan_start", input, output, count, type, op, comm),
                    request);
}

int unisono_reduce_plan(const void* input, void* output, int64_t count, unisono_type_t type,
                        unisono_op_t op, int root, unisono_comm_t comm, unisono_plan_t* plan) {
  return api::make_plan(
      api::reduce("unisono_reduce_plan", input, output, count, type, op, root, comm), plan);
}

int unisono_allreduce_plan(const void* input, void* output, int64_t count, unisono_type_t type,
                           unisono_op_t op, unisono_comm_t comm, unisono_plan_t* plan) {
  return api::make_plan(
      api::allreduce("unisono_allreduce_plan", input, output, count, type, op, comm), plan);
}

int unisono_reduce_scatter_block_plan(const void* input, void* output, int64_t count,
                                      unisono_type_t type, unisono_op_t op, unisono_comm_t comm,
                                      unisono_plan_t* plan) {
  return api::make_plan(api::reduce_scatter_block("unisono_reduce_scatter_block_plan", input,
                                                  output, count, type, op, comm),
                        plan);
}

int unisono_scan_plan(const void* input, void* output, int64_t count, unisono_type_t type,
                      unisono_op_t op, unisono_comm_t comm, unisono_plan_t* plan) {
  return api::make_plan(api::scan("unisono_scan_plan", input, output, count, type, op, comm), plan);
}

int unisono_exscan_plan(const void* input, void* output, int64_t count, unisono_type_t type,
                        unisono_op_t op, unisono_comm_t comm, unisono_plan_t* plan) {
  return api::make_plan(api::exscan("unisono_exscan_plan", input, output, count, type, op, comm),
                        plan);
}

}  // extern "C"
