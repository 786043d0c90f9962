// SPDX-License-Identifier: BSD-3-Clause
#include "api/launch.hpp"

#include <fmt/format.h>

#include "api/arguments/arguments.hpp"
#include "api/last_block_call.hpp"

namespace unisono::api {
namespace {

using base::Code;
using base::Error;
using base::Result;
using comm::AgentPause;

// Others: whether they wait for this rank to make the call, or it is only planned.
enum class Others : std::uint8_t { wait_for_us, not_concerned };

// A call that can be made.
struct Prepared {
  Checked checked;
  const plan::Plan* plan = nullptr;
  std::uint64_t generation = 0;  // of the plan: its call may replace it
};

Error cannot_make(Comm& comm, Others others, const Error& why) {
  if (others == Others::wait_for_us)
    return comm.communicator->failures().refuse(why.code, why.message);
  return {why.code, fmt::format("rank {}: {}", comm.communicator->rank(), why.message)};
}

Result<Prepared> prepare(const Arguments& arguments, Comm& comm, Others others) {
  auto checked = check(arguments, comm);
  if (!checked) return cannot_make(comm, others, checked.error());
  if (comm.communicator->failures().starts_no_more()) return comm.communicator->failures().tell();
  const auto plan = comm.communicator->plan(checked->call);
  if (!plan) {
    const std::string what = fmt::format("{}: {}", arguments.function, plan.error().message);
    return cannot_make(comm, others, {plan.error().code, what});
  }
  return Prepared{std::move(checked).value(), *plan, comm.communicator->plans().generation()};
}

// For the next call, if it is the same. Blocks with types are aligned or not by where the buffer
// begins, so they are checked every time.
void remember(const Arguments& arguments, Comm& comm, const Prepared& made) {
  const bool has_blocks = arguments.blocks != nullptr;
  if (has_blocks && arguments.blocks->scope == CountScope::of_own_typed) return;
  const LastCall checked{arguments.count,   arguments.type, arguments.op,   arguments.root,
                         made.checked.rule, made.plan,      made.generation};
  const int which = static_cast<int>(arguments.collective);
  if (!has_blocks) {
    comm.last_calls[which] = checked;
    return;
  }
  comm.last_block_calls[which] = std::make_unique<LastBlockCall>(
      checked, arguments, comm.communicator->rank(), comm.communicator->size());
}

// The operation under way fails on all ranks: its operator's function has not got what it wanted.
int fail_without_comm(const Arguments& arguments) {
  const Error error = bad_comm(arguments.function, arguments.comm);
  if (auto* const run = plan::running_function) run->fail(error.message);
  return fail(error);
}

}  // namespace

int refuse(Comm& comm, Code code, const std::string& what) {
  return fail(comm.communicator->failures().refuse(code, what));
}

int fail_repeat(Comm& comm, const Error& error) {
  const AgentPause pause(comm.communicator.get());
  return fail(error);
}

int fail_thrown(Comm* comm, const char* function, const std::exception& thrown) noexcept {
  const int error = fail(function, thrown);
  if (comm == nullptr) return error;
  try {
    const AgentPause pause(comm->communicator.get());
    const std::string what = unisono_last_error();
    return fail(comm->communicator->failures().refuse(static_cast<Code>(error), what,
                                                      comm::FailureState::Ending::all));
  } catch (const std::exception&) {
    return error;  // No memory to tell the others either: they wait until this rank ends.
  }
}

int run_new(const Arguments& arguments) {
  Comm* const comm = find_comm(arguments.comm);
  if (comm == nullptr) return fail_without_comm(arguments);
  const AgentPause pause(comm->communicator.get());
  const auto made = prepare(arguments, *comm, Others::wait_for_us);
  if (!made) return fail(made.error());
  const auto status =
      comm->communicator->run(*made->plan, made->checked.input, made->checked.output);
  if (!status) return fail(status.error());
  remember(arguments, *comm, *made);
  return UNISONO_OK;
}

int run_blocks(const Arguments& arguments) try {
  Comm* const comm = find_comm(arguments.comm);
  if (comm == nullptr) return run_new(arguments);
  const auto& last = comm->last_block_calls[static_cast<int>(arguments.collective)];
  if (last == nullptr || !last->fits(arguments)) return run_new(arguments);
  const LastCall& checked = last->checked();
  if (checked.generation != comm->communicator->plans().generation()) return run_new(arguments);
  const auto status = comm->communicator->run(*checked.plan, checked.buffers.input(arguments),
                                              checked.buffers.output(arguments));
  return status ? UNISONO_OK : fail_repeat(*comm, status.error());
} catch (const std::exception& thrown) {
  return fail_thrown(comms().get(arguments.comm), arguments.function, thrown);
}

int start(const Arguments& arguments, unisono_request_t* handle) try {
  if (handle != nullptr) *handle = nullptr;
  Comm* const comm = find_comm(arguments.comm);
  if (comm == nullptr) return fail_without_comm(arguments);
  const AgentPause pause(comm->communicator.get());
  if (handle == nullptr) {
    return refuse(*comm, Code::argument, fmt::format("{}: request is NULL", arguments.function));
  }
  const auto made = prepare(arguments, *comm, Others::wait_for_us);
  if (!made) return fail(made.error());
  auto request = std::make_unique<Request>();
  Request* const raw = request.get();
  comm->requests.insert(raw);
  raw->comm = comm;
  const unisono_request_t given = requests().insert(std::move(request));
  if (given == nullptr) {
    return refuse(*comm, Code::resources,
                  fmt::format("{}: there are {} requests already; complete some",
                              arguments.function, requests().kMost));
  }
  HandleGuard guard(requests(), given);
  const auto status = comm->communicator->start(*made->plan, made->checked.input,
                                                made->checked.output, raw->pending);
  if (!status) return fail(status.error());
  *handle = guard.keep();
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail_thrown(comms().get(arguments.comm), arguments.function, thrown);
}

int make_plan(const Arguments& arguments, unisono_plan_t* handle) try {
  if (handle == nullptr) {
    return fail(Code::argument, fmt::format("{}: plan is NULL", arguments.function));
  }
  *handle = nullptr;
  Comm* const comm = find_comm(arguments.comm);
  if (comm == nullptr) return fail_without_comm(arguments);
  const AgentPause pause(comm->communicator.get());
  const auto made = prepare(arguments, *comm, Others::not_concerned);
  if (!made) return fail(made.error());
  auto plan = std::make_unique<PersistentPlan>();
  comm->plans.insert(plan.get());
  plan->comm = comm;
  plan->plan = made->plan->shared_from_this();
  plan->input = made->checked.input;
  plan->output = made->checked.output;
  *handle = plans().insert(std::move(plan));
  if (*handle == nullptr) {
    return fail(Code::resources, fmt::format("{}: there are {} plans already; free some",
                                             arguments.function, plans().kMost));
  }
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail(arguments.function, thrown);
}

}  // namespace unisono::api
