// SPDX-License-Identifier: BSD-3-Clause
// PendingCall: a nonblocking or persistent call between its start and its end. The communicator's
// PendingCalls let it go on.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "calls/call.hpp"
#include "communicator.hpp"

namespace unisono::mpi {

struct PendingCall {
  // `ended` is called once the call is complete or has failed, without a lock: it may end this
  // object.
  using Ended = void(PendingCall&);

  PendingCall(Communicator& called, std::unique_ptr<Call> by, Ended* at_end)
      : own(&called), call(std::move(by)), ended(at_end) {}

  Communicator* own;
  std::unique_ptr<Call> call;
  Ended* ended;
  unisono_request_t started = nullptr;
  Handle request = 0;  // the program's
  int error = UNISONO_OK;
  std::string text;  // of the error
  bool is_reported = false;
  int code = 0;  // MPI's, of an error of the host

  // Lets the call go on. True once it has ended.
  bool look();
};

}  // namespace unisono::mpi
