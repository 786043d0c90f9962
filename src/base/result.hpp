// SPDX-License-Identifier: BSD-3-Clause
// Result<T>: an operating error is a value. It carries a code that the C API hands out unchanged
// and a message that says what happened, where, and what to do. Broken invariants are not errors:
// see base/check.hpp. Any thread.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.hpp"

namespace unisono::base {

// The numbers are part of the C ABI (unisono.h repeats them; api/ asserts that they agree).
enum class Code : int {
  ok = 0,
  argument = 1,        // the caller passed something invalid
  type = 2,            // unknown datatype, or the operator does not fit it
  state = 3,           // call before init, after finalize, or on a handle that has ended
  mismatch = 4,        // the ranks called different things
  rank_lost = 5,       // a rank exited, was killed, or left
  timeout = 6,         // a deadline passed
  resources = 7,       // memory, descriptors, or a named limit
  system = 8,          // a system call failed
  unsupported = 9,     // right, but not available here
  peer_argument = 10,  // another rank passed something invalid, so the operation cannot happen
  cancelled = 11,      // a rank gave the operation up
};

const char* code_name(Code code);

struct Error {
  Code code = Code::ok;
  std::string message;
};

// An error of code argument.
Error argument_error(std::string message);

// An error of code system: "what: errno text", and what to do where descriptors have run out.
Error system_error(std::string_view what, int error_number);

// The error for an exception of the standard library: resources if memory is short, else system.
Error error_of(const std::exception& thrown);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    UNISONO_CHECK(ok(), "value() of a failed Result");
    return std::get<0>(state_);
  }
  const T& value() const& {
    UNISONO_CHECK(ok(), "value() of a failed Result");
    return std::get<0>(state_);
  }
  T&& value() && {
    UNISONO_CHECK(ok(), "value() of a failed Result");
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    UNISONO_CHECK(!ok(), "error() of a successful Result");
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

// A Result without a value.
struct Unit {};
using Status = Result<Unit>;
inline Status success() { return Unit{}; }

}  // namespace unisono::base

#define UNISONO_CONCAT_(a, b) a##b
#define UNISONO_CONCAT(a, b) UNISONO_CONCAT_(a, b)

// UNISONO_TRY(expr): return the error of expr from this function, or go on.
#define UNISONO_TRY(expr)                             \
  do {                                                \
    if (auto try_status = (expr); !try_status.ok()) { \
      return try_status.error();                      \
    }                                                 \
  } while (false)

// UNISONO_ASSIGN(target, expr): as UNISONO_TRY, and on success target = value.
#define UNISONO_ASSIGN(target, expr)                  \
  auto UNISONO_CONCAT(assign_, __LINE__) = (expr);    \
  if (!UNISONO_CONCAT(assign_, __LINE__).ok()) {      \
    return UNISONO_CONCAT(assign_, __LINE__).error(); \
  }                                                   \
  target = std::move(UNISONO_CONCAT(assign_, __LINE__)).value()
