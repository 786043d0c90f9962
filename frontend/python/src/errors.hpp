// SPDX-License-Identifier: BSD-3-Clause
// From error codes and wrong arguments to Python's exceptions, whose classes are in
// unisono/_errors.py. Callers hold the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <unisono/unisono.h>

#include <stdexcept>
#include <string>

namespace unisono::python {

// An argument that a collective cannot take. It becomes a Python exception after the other ranks
// have been told (Communicator::refuse).
class BadArgument : public std::invalid_argument {
 public:
  enum class Kind { value, type };
  explicit BadArgument(const std::string& what, Kind kind = Kind::value)
      : std::invalid_argument(what), kind_(kind) {}
  Kind kind() const { return kind_; }
  // The library's.
  int code() const { return kind_ == Kind::type ? UNISONO_ERROR_TYPE : UNISONO_ERROR_ARGUMENT; }

 private:
  Kind kind_;
};

// Raises the exception of this code. `rank` is the one that is the cause; -1: none is known.
[[noreturn]] void raise(int code, const std::string& message, int rank = -1);
// Raises an exception that was kept (python_error::value()).
[[noreturn]] void raise(const nanobind::object& exception);
// The type and the text of an exception, without its traceback.
std::string text_of(const nanobind::python_error& error);
// An exception of the caller's objects, such as an OverflowError of a number, becomes the cause of
// an ArgumentError or a DatatypeError with this text. Returns if it is to be passed on as it is.
void raise_because_of(nanobind::python_error& error, const std::string& message, int rank);
// Raises unisono_last_error() if the code is not UNISONO_OK.
void check(int code);

}  // namespace unisono::python
