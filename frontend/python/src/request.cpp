// SPDX-License-Identifier: BSD-3-Clause
#include "request.hpp"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>

namespace unisono::python {

namespace nb = nanobind;

nb::object finish(Call& call) {
  if (call.op.user != nullptr) [[unlikely]] {
    const nb::object error = take_error(*call.op.user);
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
  use.run([this] { return call_->start(&request_); });
}

Request::~Request() {
  if (request_ != nullptr) call_->comm.keep({request_, call_});
}

nb::object Request::wait() {
  if (request_ != nullptr) {
    Communicator::Use use(call_->comm);
    use.run([this] { return unisono_wait(&request_); });
  }
  return finish(*call_);
}

bool Request::done() {
  if (request_ == nullptr) return true;
  int done = 0;
  Communicator::Use use(call_->comm);
  use.run([&] { return unisono_test(&request_, &done); });
  return done != 0;
}

void Request::cancel() {
  if (request_ == nullptr) return;
  Communicator::Use use(call_->comm);
  use.run([this] { return unisono_cancel(&request_); });
}

Plan::Plan(nb::object owner, std::unique_ptr<Call> call)
    : owner_(std::move(owner)), call_(std::move(call)) {
  Communicator::Use use(call_->comm);
  use.run([this] { return call_->plan(&plan_); });
}

// The operation of an active start goes on, with its arrays.
Plan::~Plan() {
  if (plan_ == nullptr) return;
  if (is_active_ && call_->comm.is_own()) {
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
  use.run([this] { return unisono_plan_start(plan_); });
  is_active_ = true;
}

nb::object Plan::wait() {
  require_open();
  if (is_active_) {
    Communicator::Use use(call_->comm);
    is_active_ = false;  // also if it has failed
    use.run([this] { return unisono_plan_wait(plan_); });
  }
  return finish(*call_);
}

bool Plan::done() {
  require_open();
  if (!is_active_) return true;
  int done = 0;
  Communicator::Use use(call_->comm);
  try {
    use.run([&] { return unisono_plan_test(plan_, &done); });
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
  use.run([this] {
    const int code = unisono_plan_start(plan_);
    return code == UNISONO_OK ? unisono_plan_wait(plan_) : code;
  });
  return finish(*call_);
}

void Plan::close() {
  if (plan_ == nullptr) return;
  if (call_->comm.is_open()) wait();
  const unisono_plan_t plan = std::exchange(plan_, nullptr);
  if (call_->comm.is_own()) check(unisono_plan_free(plan));
}

}  // namespace unisono::python
