// SPDX-License-Identifier: BSD-3-Clause
// How a user's function tells that it cannot combine its operands: unisono_op_fail() notes it, and
// the kernel that has called the function throws. The engine then fails the operation, so that no
// rank goes on with what the function has not written. Any thread.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace unisono::plan {

class OperatorFailure : public std::exception {
 public:
  explicit OperatorFailure(std::string why) : why_(std::move(why)) {}
  const char* what() const noexcept override { return why_.c_str(); }

 private:
  std::string why_;
};

class FunctionRun;
// The run of an operator's function on this thread; null: none runs.
inline constinit thread_local FunctionRun* running_function = nullptr;

// While a function runs on this thread.
class FunctionRun {
 public:
  FunctionRun() : before_(std::exchange(running_function, this)) {}
  ~FunctionRun() { running_function = before_; }
  FunctionRun(const FunctionRun&) = delete;
  FunctionRun& operator=(const FunctionRun&) = delete;

  void fail(std::string why) {
    if (!why_) why_ = std::move(why);
  }
  // After the function.
  void throw_failure() {
    if (why_) throw OperatorFailure(*std::move(why_));
  }

 private:
  FunctionRun* before_;
  std::optional<std::string> why_;
};

}  // namespace unisono::plan
