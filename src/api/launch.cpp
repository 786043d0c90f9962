// SPDX-License-Identifier: BSD-3-Clause
#include "api/launch.hpp"

#include <fmt/format.h>

#include "api/arguments/arguments.hpp"

namespace unisono::api {

using base::Code;

int run_new(const Arguments& arguments) {
  const auto checked = check(arguments, Others::wait_for_us);
  if (!checked) return fail(checked.error());
  group::Communicator& group = *checked->comm->group;
  const auto status = group.run(checked->call, checked->input, checked->output);
  if (!status) return fail(status.error());
  if (arguments.blocks != nullptr) return UNISONO_OK;
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

}  // namespace unisono::api
