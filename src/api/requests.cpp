// SPDX-License-Identifier: BSD-3-Clause
// Entry points that complete requests, and that start persistent plans.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "api/error.hpp"
#include "api/launch.hpp"
#include "api/objects.hpp"

namespace unisono::api {
namespace {

using base::Code;
using base::Error;
using base::Result;
using comm::AgentPause;
using comm::Communicator;
using comm::Pending;

Result<Request*> find_request(const char* function, const unisono_request_t* handle) {
  if (plan::running_function != nullptr) return called_by_operator(function);
  if (handle == nullptr || *handle == nullptr) {
    return Error{Code::state,
                 fmt::format("{}: the request is NULL: it has ended, or never began", function)};
  }
  Request* request = requests().get(*handle);
  if (request == nullptr) {
    return Error{Code::state, fmt::format("{}: the request has ended; a copy of it cannot be used "
                                          "again",
                                          function)};
  }
  return request;
}

Communicator* communicator_of(const Request& request) {
  return request.comm == nullptr ? nullptr : request.comm->communicator.get();
}

// Null if the request has ended.
Comm* comm_of(const unisono_request_t* handle) {
  const Request* const request = handle == nullptr ? nullptr : requests().get(*handle);
  return request == nullptr ? nullptr : request->comm;
}

Comm* comm_of(unisono_plan_t handle) {
  const PersistentPlan* const plan = plans().get(handle);
  return plan == nullptr ? nullptr : plan->comm;
}

std::unique_ptr<Request> end_request(unisono_request_t* handle) {
  std::unique_ptr<Request> request = requests().remove(*handle);
  *handle = nullptr;
  return request;
}

// Ends the request, and returns its result. Other operations continue.
int collect(const char* function, unisono_request_t* handle) {
  const std::unique_ptr<Request> request = end_request(handle);
  if (request->comm == nullptr) {
    return fail(Code::state, fmt::format("{}: the communicator of this request ended before the "
                                         "request did",
                                         function));
  }
  if (request->pending.state == Pending::State::failed) {
    return fail(request->comm->communicator->failures().tell());
  }
  return UNISONO_OK;
}

// The communicator of `request` must not be with the agent.
bool has_ended(const Request& request) {
  return request.comm == nullptr || request.pending.state != Pending::State::running;
}

// Whether a rank cancelled it; the error then counts as reported.
bool was_cancelled(const Request& request) {
  return request.comm != nullptr && request.pending.state == Pending::State::failed &&
         request.comm->communicator->failures().tell().code == Code::cancelled;
}

Result<PersistentPlan*> find_plan(const char* function, unisono_plan_t handle) {
  if (plan::running_function != nullptr) return called_by_operator(function);
  PersistentPlan* plan = plans().get(handle);
  if (plan == nullptr) {
    return Error{Code::state, fmt::format("{}: the plan is NULL, or has been freed", function)};
  }
  if (plan->comm == nullptr) {
    return Error{Code::state, fmt::format("{}: the plan's communicator has ended", function)};
  }
  return plan;
}

int collect_start(PersistentPlan& plan) {
  plan.active = false;
  if (plan.pending.state == Pending::State::failed)
    return fail(plan.comm->communicator->failures().tell());
  return UNISONO_OK;
}

}  // namespace
}  // namespace unisono::api

extern "C" {

using namespace unisono::api;  // NOLINT: entry points of one namespace
using unisono::base::Code;
using unisono::comm::AgentPause;
using unisono::comm::Communicator;
using unisono::comm::Pending;

int unisono_test(unisono_request_t* request, int* done) try {
  const auto found = find_request("unisono_test", request);
  if (!found) return fail(found.error());
  if (done == nullptr) return fail(Code::argument, "unisono_test: done is NULL");
  *done = 0;
  AgentPause pause(communicator_of(**found), AgentPause::ForLook{});
  if (!pause.has_it()) return UNISONO_OK;
  if (!has_ended(**found)) (*found)->comm->communicator->look();
  if (!has_ended(**found)) {
    pause.is_of_a_look();
    return UNISONO_OK;
  }
  *done = 1;
  return collect("unisono_test", request);
} catch (const std::exception& thrown) {
  return fail_thrown(comm_of(request), "unisono_test", thrown);
}

int unisono_wait(unisono_request_t* request) try {
  const auto found = find_request("unisono_wait", request);
  if (!found) return fail(found.error());
  const AgentPause pause(communicator_of(**found));
  if (!has_ended(**found)) {
    Communicator* const communicators[] = {(*found)->comm->communicator.get()};
    Pending* const awaited[] = {&(*found)->pending};
    Communicator::wait_any(communicators, awaited);
  }
  return collect("unisono_wait", request);
} catch (const std::exception& thrown) {
  return fail_thrown(comm_of(request), "unisono_wait", thrown);
}

int unisono_wait_any(unisono_request_t* handles, int count, int* index) try {
  if (index == nullptr) return fail(Code::argument, "unisono_wait_any: index is NULL");
  *index = -1;
  if (count < 0 || (handles == nullptr && count > 0)) {
    return fail(
        Code::argument,
        fmt::format("unisono_wait_any: {} requests at NULL or a negative number of them", count));
  }
  std::deque<AgentPause> pauses;  // one for each communicator
  std::vector<Communicator*> communicators;
  std::vector<Pending*> awaited;
  for (int i = 0; i < count; ++i) {
    if (handles[i] == nullptr) continue;
    const auto found = find_request("unisono_wait_any", &handles[i]);
    if (!found) return fail(found.error());
    Communicator* const communicator = communicator_of(**found);
    if (std::ranges::find(communicators, communicator) == communicators.end()) {
      communicators.push_back(communicator);
      pauses.emplace_back(communicator);
    }
    if (has_ended(**found)) {
      *index = i;
      return collect("unisono_wait_any", &handles[i]);
    }
    awaited.push_back(&(*found)->pending);
  }
  if (awaited.empty()) return UNISONO_OK;
  Communicator::wait_any(communicators, awaited);
  for (int i = 0; i < count; ++i) {
    if (handles[i] == nullptr || !has_ended(*requests().get(handles[i]))) continue;
    *index = i;
    return collect("unisono_wait_any", &handles[i]);
  }
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  int error = fail("unisono_wait_any", thrown);
  for (int i = 0; i < count; ++i) {
    error = fail_thrown(comm_of(&handles[i]), "unisono_wait_any", thrown);
  }
  return error;
}

int unisono_wait_all(unisono_request_t* handles, int count) try {
  if (count < 0 || (handles == nullptr && count > 0)) {
    return fail(
        Code::argument,
        fmt::format("unisono_wait_all: {} requests at NULL or a negative number of them", count));
  }
  int first_error = UNISONO_OK;
  std::string first_message;
  for (int i = 0; i < count; ++i) {
    if (handles[i] == nullptr) continue;
    const int error = unisono_wait(&handles[i]);
    if (error != UNISONO_OK && first_error == UNISONO_OK) {
      first_error = error;
      first_message = unisono_last_error();
    }
  }
  if (first_error != UNISONO_OK) return fail(static_cast<Code>(first_error), first_message);
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_wait_all", thrown);
}

int unisono_cancel(unisono_request_t* handle) try {
  const auto found = find_request("unisono_cancel", handle);
  if (!found) return fail(found.error());
  Request& request = **found;
  const AgentPause pause(communicator_of(request));
  if (!has_ended(request)) request.comm->communicator->look();
  if (has_ended(request)) {
    if (!was_cancelled(request)) return collect("unisono_cancel", handle);
    // Cancelled by a rank; this rank has what it asked for.
    end_request(handle);
    return UNISONO_OK;
  }
  Communicator& communicator = *request.comm->communicator;
  communicator.failures().fail_all(
      Code::cancelled,
      fmt::format("rank {} cancelled operation {}", communicator.rank(),
                  request.pending.operation.index),
      request.pending.operation.index, communicator.rank());
  communicator.failures().tell();
  end_request(handle);
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail_thrown(comm_of(handle), "unisono_cancel", thrown);
}

int unisono_plan_start(unisono_plan_t handle) try {
  const auto found = find_plan("unisono_plan_start", handle);
  if (!found) return fail(found.error());
  PersistentPlan& plan = **found;
  const AgentPause pause(plan.comm->communicator.get());
  if (plan.active) {
    return refuse(*plan.comm, Code::state,
                  "unisono_plan_start: a start of this plan is still active; wait for it first");
  }
  const auto status =
      plan.comm->communicator->start(*plan.plan, plan.input, plan.output, plan.pending);
  if (!status) return fail(status.error());
  plan.active = true;
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail_thrown(comm_of(handle), "unisono_plan_start", thrown);
}

int unisono_plan_test(unisono_plan_t handle, int* done) try {
  const auto found = find_plan("unisono_plan_test", handle);
  if (!found) return fail(found.error());
  PersistentPlan& plan = **found;
  if (done == nullptr) return fail(Code::argument, "unisono_plan_test: done is NULL");
  *done = 0;
  if (!plan.active) return fail(Code::state, "unisono_plan_test: the plan has not been started");
  AgentPause pause(plan.comm->communicator.get(), AgentPause::ForLook{});
  if (!pause.has_it()) return UNISONO_OK;
  if (plan.pending.state == Pending::State::running) plan.comm->communicator->look();
  if (plan.pending.state == Pending::State::running) {
    pause.is_of_a_look();
    return UNISONO_OK;
  }
  *done = 1;
  return collect_start(plan);
} catch (const std::exception& thrown) {
  return fail_thrown(comm_of(handle), "unisono_plan_test", thrown);
}

int unisono_plan_wait(unisono_plan_t handle) try {
  const auto found = find_plan("unisono_plan_wait", handle);
  if (!found) return fail(found.error());
  PersistentPlan& plan = **found;
  if (!plan.active) return fail(Code::state, "unisono_plan_wait: the plan has not been started");
  const AgentPause pause(plan.comm->communicator.get());
  if (plan.pending.state == Pending::State::running) {
    Communicator* const communicators[] = {plan.comm->communicator.get()};
    Pending* const awaited[] = {&plan.pending};
    Communicator::wait_any(communicators, awaited);
  }
  return collect_start(plan);
} catch (const std::exception& thrown) {
  return fail_thrown(comm_of(handle), "unisono_plan_wait", thrown);
}

int unisono_plan_free(unisono_plan_t handle) try {
  PersistentPlan* plan = plans().get(handle);
  if (plan == nullptr) {
    return fail(Code::state, "unisono_plan_free: the plan is NULL, or has been freed");
  }
  if (plan->comm != nullptr) {
    if (plan->active) {
      return fail(Code::state,
                  "unisono_plan_free: a start of this plan is still active; wait for "
                  "it first");
    }
  }
  plans().remove(handle);
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_plan_free", thrown);
}

}  // extern "C"
