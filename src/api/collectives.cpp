// SPDX-License-Identifier: BSD-3-Clause
// Entry points of the collectives: each fills Arguments, and then runs, starts or plans them. A
// blocking call that is the same as the one before goes straight to its plan.
#include <fmt/format.h>

#include "api/arguments.hpp"
#include "api/error.hpp"
#include "api/objects.hpp"

namespace unisono::api {
namespace {

using base::Code;
using schedule::Collective;

int run_new(const Arguments& arguments) {
  const auto checked = check(arguments, Others::wait_for_us);
  if (!checked) return fail(checked.error());
  group::Communicator& group = *checked->comm->group;
  const auto status = group.run(checked->call, checked->input, checked->output);
  if (!status) return fail(status.error());
  if (auto plan = group.plan(checked->call)) {
    checked->comm->repeats[static_cast<int>(arguments.collective)] = {arguments.count,
                                                                      arguments.type,
                                                                      arguments.op,
                                                                      arguments.root,
                                                                      checked->rule,
                                                                      *plan,
                                                                      group.plans().generation()};
  }
  return UNISONO_OK;
}

int run(const Arguments& arguments) {
  Comm* comm = comms().get(arguments.comm);
  if (comm != nullptr) [[likely]] {
    const Repeat& last = comm->repeats[static_cast<int>(arguments.collective)];
    if (last.fits(arguments) && last.generation == comm->group->plans().generation()) [[likely]] {
      const auto status = comm->group->run(*last.plan, last.input(arguments), arguments.output);
      return status ? UNISONO_OK : fail(status.error());
    }
  }
  return run_new(arguments);
}

int start(const Arguments& arguments, unisono_request_t* handle) {
  if (handle == nullptr) {
    return fail(Code::argument, fmt::format("{}: request is NULL", arguments.function));
  }
  *handle = nullptr;
  const auto checked = check(arguments, Others::wait_for_us);
  if (!checked) return fail(checked.error());
  group::Communicator& group = *checked->comm->group;
  if (group.failed()) return fail(group.failure());
  auto plan = group.plan(checked->call);
  if (!plan) return fail(plan.error());
  auto request = std::make_unique<Request>();
  request->comm = checked->comm;
  Request* const raw = request.get();
  *handle = requests().insert(std::move(request));
  if (*handle == nullptr) {
    return fail(Code::resources, fmt::format("{}: there are {} requests already; complete some",
                                             arguments.function, requests().kMost));
  }
  const auto status = group.start(**plan, checked->input, checked->output, raw->pending);
  if (!status) {
    requests().remove(*handle);
    *handle = nullptr;
    return fail(status.error());
  }
  checked->comm->requests.insert(raw);
  return UNISONO_OK;
}

int make_plan(const Arguments& arguments, unisono_plan_t* handle) {
  if (handle == nullptr) {
    return fail(Code::argument, fmt::format("{}: plan is NULL", arguments.function));
  }
  *handle = nullptr;
  const auto checked = check(arguments, Others::not_concerned);
  if (!checked) return fail(checked.error());
  group::Communicator& group = *checked->comm->group;
  if (group.failed()) return fail(group.failure());
  auto cached = group.plan(checked->call);
  if (!cached) return fail(cached.error());
  auto plan = std::make_unique<PersistentPlan>();
  plan->comm = checked->comm;
  plan->cached = *cached;
  plan->input = checked->input;
  plan->output = checked->output;
  PersistentPlan* const raw = plan.get();
  *handle = plans().insert(std::move(plan));
  if (*handle == nullptr) {
    return fail(Code::resources, fmt::format("{}: there are {} plans already; free some",
                                             arguments.function, plans().kMost));
  }
  ++raw->cached->pins;
  checked->comm->plans.insert(raw);
  return UNISONO_OK;
}

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

Arguments reduce(const char* function, const void* input, void* output, int64_t count,
                 unisono_type_t type, unisono_op_t op, int root, unisono_comm_t comm) {
  return {function, Collective::reduce, input, output, count, type, op, root, comm};
}

Arguments allreduce(const char* function, const void* input, void* output, int64_t count,
                    unisono_type_t type, unisono_op_t op, unisono_comm_t comm) {
  return {function, Collective::allreduce, input, output, count, type, op, 0, comm};
}

Arguments allgather(const char* function, const void* input, void* output, int64_t count,
                    unisono_type_t type, unisono_comm_t comm) {
  return {function, Collective::allgather, input, output, count, type, -1, 0, comm};
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

int unisono_reduce(const void* input, void* output, int64_t count, unisono_type_t type,
                   unisono_op_t op, int root, unisono_comm_t comm) {
  return api::run(api::reduce("unisono_reduce", input, output, count, type, op, root, comm));
}

int unisono_allreduce(const void* input, void* output, int64_t count, unisono_type_t type,
                      unisono_op_t op, unisono_comm_t comm) {
  return api::run(api::allreduce("unisono_allreduce", input, output, count, type, op, comm));
}

int unisono_allgather(const void* input, void* output, int64_t count, unisono_type_t type,
                      unisono_comm_t comm) {
  return api::run(api::allgather("unisono_allgather", input, output, count, type, comm));
}

int unisono_barrier_start(unisono_comm_t comm, unisono_request_t* request) {
  return api::start(api::barrier("unisono_barrier_start", comm), request);
}

int unisono_broadcast_start(void* buffer, int64_t count, unisono_type_t type, int root,
                            unisono_comm_t comm, unisono_request_t* request) {
  return api::start(api::broadcast("unisono_broadcast_start", buffer, count, type, root, comm),
                    request);
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

int unisono_allgather_start(const void* input, void* output, int64_t count, unisono_type_t type,
                            unisono_comm_t comm, unisono_request_t* request) {
  return api::start(api::allgather("unisono_allgather_start", input, output, count, type, comm),
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

int unisono_allgather_plan(const void* input, void* output, int64_t count, unisono_type_t type,
                           unisono_comm_t comm, unisono_plan_t* plan) {
  return api::make_plan(api::allgather("unisono_allgather_plan", input, output, count, type, comm),
                        plan);
}

}  // extern "C"
