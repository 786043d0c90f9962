// SPDX-License-Identifier: BSD-3-Clause
// Exceptions that torch turns into Python's: DistBackendError for errors of a collective,
// ValueError and TypeError for wrong arguments.
#pragma once

#include <c10/util/Exception.h>

#include <string>

namespace unisono::pytorch {

// A call that this rank cannot make. The group tells the other ranks before it becomes a Python
// exception (Group::run).
class BadArgument : public std::exception {
 public:
  enum class Kind { value, type };
  explicit BadArgument(std::string what, Kind kind = Kind::value)
      : what_(std::move(what)), kind_(kind) {}
  const char* what() const noexcept override { return what_.c_str(); }
  [[noreturn]] void raise(const std::string& function) const {
    const std::string text = function + ": " + what_;
    if (kind_ == Kind::type) C10_THROW_ERROR(TypeError, text);
    C10_THROW_ERROR(ValueError, text);
  }

 private:
  std::string what_;
  Kind kind_;
};

}  // namespace unisono::pytorch
