// SPDX-License-Identifier: BSD-3-Clause
// Entry points of the collectives that move equal blocks, and of the barrier: each fills Arguments,
// and then runs, starts or plans them.
#include "api/launch.hpp"

namespace unisono::api {
namespace {

using schedule::Collective;

Arguments barrier(const char* function, unisono_comm_t comm) {
  Arguments a;
  a.function = function;
  a.comm = comm;
  return a;
}

Arguments broadcast(const char* function, void* buffer, int64_t count, unisono_type_t type,
                    int root, unisono_comm_t comm) {
  return {function, Collective::broadcast, buffer, buffer, count, type, -1, root, comm};
}

Arguments gather(const char* function, const void* input, void* output, int64_t count,
                 unisono_type_t type, int root, unisono_comm_t comm) {
  return {function, Collective::gather, input, output, count, type, -1, root, comm};
}

Arguments scatter(const char* function, const void* input, void* output, int64_t count,
                  unisono_type_t type, int root, unisono_comm_t comm) {
  return {function, Collective::scatter, input, output, count, type, -1, root, comm};
}

Arguments allgather(const char* function, const void* input, void* output, int64_t count,
                    unisono_type_t type, unisono_comm_t comm) {
  return {function, Collective::allgather, input, output, count, type, -1, 0, comm};
}

Arguments alltoall(const char* function, const void* input, void* output, int64_t count,
                   unisono_type_t type, unisono_comm_t comm) {
  return {function, Collective::alltoall, input, output, count, type, -1, 0, comm};
}

}  // namespace
}  // namespace unisono::api

extern "C" {

namespace api = unisono::api;

int unisono_barrier(unisono_comm_t comm) { return api::run(api::barrier("unisono_barrier", comm)); }

int unisono_broadcast(void* buffer, int64_t count, unisono_type_t type, int root,
                      unisono_comm_t comm) {
  return api::run(api::broadcast("unisono_broadcast", buffer, count, type, root, comm));
}

int unisono_gather(const void* input, void* output, int64_t count, unisono_type_t type, int root,
                   unisono_comm_t comm) {
  return api::run(api::gather("unisono_gather", input, output, count, type, root, comm));
}

int unisono_scatter(const void* input, void* output, int64_t count, unisono_type_t type, int root,
                    unisono_comm_t comm) {
  return api::run(api::scatter("unisono_scatter", input, output, count, type, root, comm));
}

int unisono_allgather(const void* input, void* output, int64_t count, unisono_type_t type,
                      unisono_comm_t comm) {
  return api::run(api::allgather("unisono_allgather", input, output, count, type, comm));
}

int unisono_alltoall(const void* input, void* output, int64_t count, unisono_type_t type,
                     unisono_comm_t comm) {
  return api::run(api::alltoall("unisono_alltoall", input, output, count, type, comm));
}

int unisono_barrier_start(unisono_comm_t comm, unisono_request_t* request) {
  return api::start(api::barrier("unisono_barrier_start", comm), request);
}

int unisono_broadcast_start(void* buffer, int64_t count, unisono_type_t type, int root,
                            unisono_comm_t comm, unisono_request_t* request) {
  return api::start(api::broadcast("unisono_broadcast_start", buffer, count, type, root, comm),
                    request);
}

int unisono_gather_start(const void* input, void* output, int64_t count, unisono_type_t type,
                         int root, unisono_comm_t comm, unisono_request_t* request) {
  return api::start(api::gather("unisono_gather_start", input, output, count, type, root, comm),
                    request);
}

int unisono_scatter_start(const void* input, void* output, int64_t count, unisono_type_t type,
                          int root, unisono_comm_t comm, unisono_request_t* request) {
  return api::start(api::scatter("unisono_scatter_start", input, output, count, type, root, comm),
                    request);
}

int unisono_allgather_start(const void* input, void* output, int64_t count, unisono_type_t type,
                            unisono_comm_t comm, unisono_request_t* request) {
  return api::start(api::allgather("unisono_allgather_start", input, output, count, type, comm),
                    request);
}

int unisono_alltoall_start(const void* input, void* output, int64_t count, unisono_type_t type,
                           unisono_comm_t comm, unisono_request_t* request) {
  return api::start(api::alltoall("unisono_alltoall_start", input, output, count, type, comm),
                    request);
}

int unisono_barrier_plan(unisono_comm_t comm, unisono_plan_t* plan) {
  return api::make_plan(api::barrier("unisono_barrier_plan", comm), plan);
}

int unisono_broadcast_plan(void* buffer, int64_t count, unisono_type_t type, int root,
                           unisono_comm_t comm, unisono_plan_t* plan) {
  return api::make_plan(api::broadcast("unisono_broadcast_plan", buffer, count, type, root, comm),
                        plan);
}

int unisono_gather_plan(const void* input, void* output, int64_t count, unisono_type_t type,
                        int root, unisono_comm_t comm, unisono_plan_t* plan) {
  return api::make_plan(api::gather("unisono_gather_plan", input, output, count, type, root, comm),
                        plan);
}

int unisono_scatter_plan(const void* input, void* output, int64_t count, unisono_type_t type,
                         int root, unisono_comm_t comm, unisono_plan_t* plan) {
  return api::make_plan(
      api::scatter("unisono_scatter_plan", input, output, count, type, root, comm), plan);
}

int unisono_allgather_plan(const void* input, void* output, int64_t count, unisono_type_t type,
                           unisono_comm_t comm, unisono_plan_t* plan) {
  return api::make_plan(api::allgather("unisono_allgather_plan", input, output, count, type, comm),
                        plan);
}

int unisono_alltoall_plan(const void* input, void* output, int64_t count, unisono_type_t type,
                          unisono_comm_t comm, unisono_plan_t* plan) {
  return api::make_plan(api::alltoall("unisono_alltoall_plan", input, output, count, type, comm),
                        plan);
}

}  // extern "C"
