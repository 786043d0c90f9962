// SPDX-License-Identifier: BSD-3-Clause
// Request: a started collective, which keeps its arrays alive until it has ended. Plan: a prepared
// one, for any number of starts, which keeps them until it is closed. Both keep their communicator
// alive. Callers hold the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <unisono/unisono.h>

#include <memory>

#include "call.hpp"
#include "errors.hpp"

namespace unisono::python {

class Request {
 public:
  // Starts the call. `owner` is the Python object of its communicator.
  Request(nanobind::object owner, std::unique_ptr<Call> call);
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Returns the result of the collective, or raises its error; the same once more if it has ended
  // already.
  nanobind::object wait();
  bool done();
  // Ends it for all ranks, unless it is complete. Then wait() raises CancelledError.
  void cancel();
  // For Python's collector: an error refers to the frames that have waited, and these to the
  // request.
  int visit(visitproc visit, void* arg) const;
  void clear();

 private:
  template <class Function>
  void call_library(const Function& function);
  void settle();

  nanobind::object owner_;
  std::shared_ptr<Call> call_;  // null once it has ended
  unisono_request_t request_ = nullptr;
  nanobind::object result_, error_;  // of one that has ended
};

class Plan {
 public:
  Plan(nanobind::object owner, std::unique_ptr<Call> call);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  void start();
  nanobind::object wait();
  bool done();
  // start() and wait()
  nanobind::object run();
  void close();

 private:
  void require_open() const;

  nanobind::object owner_;
  std::shared_ptr<Call> call_;
  unisono_plan_t plan_ = nullptr;
  bool is_active_ = false;
  bool has_started_ = false;  // once; before that there is no result
};

// Runs `function`, which calls the library for the call and returns its code. If the call fails and
// its operator has raised an exception here, it raises that one, else the library's.
template <class Function>
void run_for(Communicator::Use& use, const Call& call, const Function& function) {
  if (call.op.user == nullptr) [[likely]]
    return use.run(function);
  try {
    use.run(function);
  } catch (const nanobind::python_error&) {
    const nanobind::object error = take_error(call.op);
    if (error.is_valid()) raise(error);
    throw;
  }
}

// The result of a call that has ended without an error of the library; raises that of the operator.
nanobind::object finish(Call& call);

}  // namespace unisono::python
