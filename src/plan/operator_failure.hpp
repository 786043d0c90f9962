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

// While a function runs on this thread.
class FunctionRun {
 public:
  FunctionRun() : before_(std::exchange(current_, this)) {}
  ~FunctionRun() { current_ = before_; }
  FunctionRun(const FunctionRun&) = delete;
  FunctionRun& operator=(const FunctionRun&) = delete;

  // Null: no function runs on this thread.
  static FunctionRun* current() { return current_; }
  void fail(std::string why) {
    if (!why_) why_ = std::move(why);
  }
  // After the function.
  void throw_failure() {
    if (why_) throw OperatorFailure(*std::move(why_));
  }

 private:
  static inline thread_local FunctionRun* current_ = nullptr;

  FunctionRun* before_;
  std::optional<std::string> why_;
};

}  // namespace unisono::plan
