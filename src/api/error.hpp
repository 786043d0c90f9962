// SPDX-License-Identifier: BSD-3-Clause
// The calling thread's last error, and the step from inner errors to the C API's numbers.
#pragma once

#include <exception>
#include <string>

#include "base/result.hpp"

namespace unisono::api {

// Remembers the message and returns the number.
int fail(const base::Error& error);
int fail(base::Code code, std::string message);
// For errors of lower layers, which do not know the called function.
int fail(const char* function, const base::Error& error);
// For the handler of an entry point, as nothing is thrown across the C API. Most often, memory was
// refused. Other kinds of exception are not caught: a cancelled thread unwinds by one.
int fail(const char* function, const std::exception& thrown) noexcept;

}  // namespace unisono::api
