// SPDX-License-Identifier: BSD-3-Clause
// Request: a started collective. Plan: a prepared one, for any number of starts. Both keep their
// arrays and their communicator alive. Callers hold the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <unisono/unisono.h>

#include <memory>

#include "call.hpp"

namespace unisono::python {

class Request {
 public:
  // Starts the call. `owner` is the Python object of its communicator.
  Request(nanobind::object owner, std::unique_ptr<Call> call);
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Returns the result of the collective; the same once more if it has ended already.
  nanobind::object wait();
  bool done();
  // Ends it for all ranks, unless it is complete.
  void cancel();
  bool is_active() const { return request_ != nullptr; }

 private:
  nanobind::object owner_;
  std::shared_ptr<Call> call_;
  unisono_request_t request_ = nullptr;
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
};

// The result of a call that has ended without an error of the library; raises that of the operator.
nanobind::object finish(Call& call);

}  // namespace unisono::python
