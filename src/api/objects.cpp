// SPDX-License-Identifier: BSD-3-Clause
#include "api/objects.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include "api/last_block_call.hpp"

namespace unisono::api {

using base::Code;
using base::Error;

Comm::Comm() = default;
Comm::~Comm() = default;

HandleTable<Comm, unisono_comm_t>& make_comms() {
  static HandleTable<Comm, unisono_comm_t> table;
  return table;
}

HandleTable<Request, unisono_request_t>& requests() {
  static HandleTable<Request, unisono_request_t> table;
  return table;
}

HandleTable<PersistentPlan, unisono_plan_t>& plans() {
  static HandleTable<PersistentPlan, unisono_plan_t> table;
  return table;
}

ThreadJobTable& thread_jobs() {
  static ThreadJobTable table;
  return table;
}

namespace {

std::atomic<bool> process_initialized{false};
std::atomic<bool> is_child_of_rank{false};

// A child of fork() shares its parent's sockets and memory and has none of its threads. Without the
// handles it cannot touch what is the parent's.
void disown_in_children() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    is_child_of_rank = true;
    comms().disown_all();
    requests().disown_all();
    plans().disown_all();
    thread_jobs().disown_all();
  });
  static_cast<void>(registered);
}

}  // namespace

base::Result<unisono_comm_t> reserve_comm(Rank& rank) {
  disown_in_children();
  auto comm = std::make_unique<Comm>();
  comm->owner = &rank;
  const unisono_comm_t handle = comms().insert(std::move(comm));
  if (handle == nullptr) {
    return Error{Code::resources, fmt::format("there are {} communicators already; free "
                                              "those that are no longer used",
                                              comms().kMost)};
  }
  return handle;
}

void add_comm(unisono_comm_t handle, std::unique_ptr<comm::Communicator> communicator) {
  Comm& comm = *comms().get(handle);
  comm.communicator = std::move(communicator);
  const std::lock_guard lock(comm.owner->mutex);
  comm.owner->comms.insert(handle);
}

void end_comm(Rank& rank, unisono_comm_t handle) {
  {
    const std::lock_guard lock(rank.mutex);
    rank.comms.erase(handle);
  }
  const std::unique_ptr<Comm> comm = comms().remove(handle);
  if (comm == nullptr) return;
  for (Request* request : comm->requests) request->comm = nullptr;
  for (PersistentPlan* plan : comm->plans) plan->comm = nullptr;
}

Error called_by_operator(const char* function) {
  return {Code::state, fmt::format("{}: the function of an operator calls it, in the middle of an "
                                   "operation. It may call unisono_op_fail only",
                                   function)};
}

Error bad_comm(const char* function, unisono_comm_t comm) {
  if (plan::running_function != nullptr) return called_by_operator(function);
  if (comm == nullptr) {
    return {Code::state, fmt::format("{}: the communicator is NULL; call unisono_init first and "
                                     "pass what it gave",
                                     function)};
  }
  if (is_child_of_rank) {
    return {Code::state, fmt::format("{}: this process is a child that a rank has forked, and has "
                                     "no part in the job; use Unisono in the parent only",
                                     function)};
  }
  return {Code::state,
          fmt::format("{}: the communicator has ended (freed, or its job finalized) or "
                      "never was one",
                      function)};
}

bool is_forked_child() { return is_child_of_rank; }

bool claim_process_init() { return !process_initialized.exchange(true); }
void release_process_init() { process_initialized.store(false); }

}  // namespace unisono::api
