// SPDX-License-Identifier: BSD-3-Clause
#include "api/launch.hpp"

#include <fmt/format.h>

#include "api/arguments/arguments.hpp"
#include "api/block_repeat.hpp"

namespace unisono::api {
namespace {

using base::Code;

// For the next call, if it is the same. Blocks with types are aligned or not by where the buffer
// begins, so they are checked every time.
void remember(const Arguments& arguments, const Checked& checked) {
  Comm& comm = *checked.comm;
  const bool has_blocks = arguments.blocks != nullptr;
  if (has_blocks && arguments.blocks->knowledge == Knowledge::of_own_typed) return;
  const auto plan = comm.group->plan(checked.call);
  if (!plan) return;
  const Repeat repeat{arguments.count,
                      arguments.type,
                      arguments.op,
                      arguments.root,
                      checked.rule,
                      *plan,
                      comm.group->plans().generation()};
  const int which = static_cast<int>(arguments.collective);
  if (!has_blocks) {
    comm.repeats[which] = repeat;
    return;
  }
  comm.block_repeats[which] =
      std::make_unique<BlockRepeat>(repeat, arguments, comm.group->rank(), comm.group->size());
}

}  // namespace

int run_new(const Arguments& arguments) {
  const auto checked = check(arguments, Others::wait_for_us);
  if (!checked) return fail(checked.error());
  const auto status = checked->comm->group->run(checked->call, checked->input, checked->output);
  if (!status) return fail(status.error());
  remember(arguments, *checked);
  return UNISONO_OK;
}

int run_blocks(const Arguments& arguments) {
  Comm* const comm = comms().get(arguments.comm);
  if (comm == nullptr) return run_new(arguments);
  const auto& last = comm->block_repeats[static_cast<int>(arguments.collective)];
  if (last == nullptr || !last->fits(arguments)) return run_new(arguments);
  const Repeat& repeat = last->repeat();
  if (repeat.generation != comm->group->plans().generation()) return run_new(arguments);
  const auto status = comm->group->run(*repeat.plan, repeat.buffers.input(arguments),
                                       repeat.buffers.output(arguments));
  return status ? UNISONO_OK : fail(status.error());
}

int start(const Arguments& arguments, unisono_request_t* handle) {
  if (handle == nullptr) {
    return fail(Code::argument, fmt::format("{}: request is NULL", arguments.function));
  }
  *handle = nullptr;
  const auto checked = check(arguments, Others::wait_for_us);
  if (!checked) return fail(checked.error());
  group::Communicator& group = *checked->comm->group;
  if (group.begins_no_more()) return fail(group.failure());
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
  if (group.begins_no_more()) return fail(group.failure());
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
