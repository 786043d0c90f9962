// SPDX-License-Identifier: BSD-3-Clause
#include "request.hpp"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>

namespace unisono::python {

namespace nb = nanobind;

nb::object finish(Call& call) {
  if (call.op.user != nullptr) [[unlikely]] {
    const nb::object error = take_error(call.op);
    if (error.is_valid()) {
      // This rank's result is worthless, and so may be the others'.
      const std::string text = nb::cast<std::string>(nb::repr(error));
      call.comm.refuse_because_of("the operator raised " + text);
      raise(error);
    }
  }
  return call.send.is_number() ? result_of(call) : call.result;
}

Request::Request(nb::object owner, std::unique_ptr<Call> call)
    : owner_(std::move(owner)), call_(std::move(call)) {
  Communicator::Use use(call_->comm);
  run_for(use, *call_, [this] { return call_->start(&request_); });
}

Request::~Request() {
  if (call_ != nullptr && request_ != nullptr) call_->comm.keep({request_, call_});
}

// Calls the library for a request that has not ended. An error ends it, unless the library was not
// called, for instance because another thread waits for it.
template <class Function>
void Request::call_library(const Function& function) {
  Communicator::Use use(call_->comm);
  try {
    run_for(use, *call_, [&] { return function(&request_); });
  } catch (const nb::python_error& error) {
    if (request_ == nullptr) {
      call_.reset();
      error_ = nb::borrow(error.value());
    }
    throw;
  }
  if (request_ == nullptr) settle();
}

// The arrays are the caller's again.
void Request::settle() {
  try {
    result_ = finish(*call_);
  } catch (const nb::python_error& error) {  // of the operator
    error_ = nb::borrow(error.value());
  }
  call_.reset();
}

nb::object Request::wait() {
  if (call_ != nullptr)
    call_library([](unisono_request_t* request) { return unisono_wait(request); });
  if (error_.is_valid()) {
    PyException_SetTraceback(error_.ptr(), Py_None);  // each wait has its own
    raise(error_);
  }
  return result_;
}

bool Request::done() {
  if (call_ == nullptr) return true;
  int done = 0;
  call_library([&done](unisono_request_t* request) { return unisono_test(request, &done); });
  return done != 0;
}

// It does nothing if the operation was complete. Otherwise the communicator has failed, and knows
// which rank has cancelled.
void Request::cancel() {
  if (call_ == nullptr) return;
  int rank = -1;
  const auto call = call_;
  call_library([&](unisono_request_t* request) {
    const int code = unisono_cancel(request);
    if (code == UNISONO_OK) unisono_comm_failed_rank(call->comm.handle(), &rank);
    return code;
  });
  if (rank < 0 || error_.is_valid()) return;
  result_.reset();
  try {
    raise(UNISONO_ERROR_CANCELLED, "rank " + std::to_string(rank) + " has cancelled this operation",
          rank);
  } catch (const nb::python_error& cancelled) {
    error_ = nb::borrow(cancelled.value());
  }
}

int Request::visit(visitproc visit, void* arg) const {
  Py_VISIT(owner_.ptr());
  Py_VISIT(result_.ptr());
  Py_VISIT(error_.ptr());
  return 0;
}

void Request::clear() {
  result_.reset();
  error_.reset();
}

Plan::Plan(nb::object owner, std::unique_ptr<Call> call)
    : owner_(std::move(owner)), call_(std::move(call)) {
  Communicator::Use use(call_->comm);
  use.run([this] { return call_->plan(&plan_); });
}

// The operation of an active start goes on, with its arrays. While another thread is in a call on
// the communicator, the plan stays until a later one.
Plan::~Plan() {
  if (plan_ == nullptr) return;
  const Visit visit;
  if (call_->comm.is_own() && (is_active_ || call_->comm.is_in_use())) {
    call_->comm.keep({nullptr, call_, plan_});
  } else if (call_->comm.is_own()) {
    unisono_plan_free(plan_);
  }
}

void Plan::require_open() const {
  if (plan_ == nullptr) raise(UNISONO_ERROR_STATE, "the plan has been closed");
}

void Plan::start() {
  require_open();
  if (is_active_) raise(UNISONO_ERROR_STATE, "a start of this plan is still active; wait for it");
  Communicator::Use use(call_->comm);
  call_->op.errors_before = errors_of(call_->op);
  run_for(use, *call_, [this] { return unisono_plan_start(plan_); });
  is_active_ = has_started_ = true;
}

nb::object Plan::wait() {
  require_open();
  if (!has_started_)
    raise(UNISONO_ERROR_STATE, "the plan has not been started; call start() first");
  if (is_active_) {
    Communicator::Use use(call_->comm);
    is_active_ = false;  // also if it has failed
    run_for(use, *call_, [this] { return unisono_plan_wait(plan_); });
  }
  return finish(*call_);
}

bool Plan::done() {
  require_open();
  if (!is_active_) return true;
  int done = 0;
  Communicator::Use use(call_->comm);
  try {
    run_for(use, *call_, [&] { return unisono_plan_test(plan_, &done); });
  } catch (...) {
    is_active_ = false;
    throw;
  }
  is_active_ = done == 0;
  return done != 0;
}

nb::object Plan::run() {
  require_open();
  if (is_active_) raise(UNISONO_ERROR_STATE, "a start of this plan is still active; wait for it");
  Communicator::Use use(call_->comm);
  call_->op.errors_before = errors_of(call_->op);
  run_for(use, *call_, [this] {
    const int code = unisono_plan_start(plan_);
    return code == UNISONO_OK ? unisono_plan_wait(plan_) : code;
  });
  has_started_ = true;
  return finish(*call_);
}

void Plan::close() {
  if (plan_ == nullptr) return;
  if (is_active_ && call_->comm.is_open()) wait();
  const unisono_plan_t plan = std::exchange(plan_, nullptr);
  const auto call = std::exchange(call_, nullptr);  // with the arrays
  const Visit visit;
  if (call->comm.is_own()) check(unisono_plan_free(plan));
}

}  // namespace unisono::python
