// SPDX-License-Identifier: BSD-3-Clause
// The calling thread's last error, and the step from inner errors to the C API's numbers.
#pragma once

#include <exception>
#include <string>

#include "base/result.hpp"

namespace unisono::api {

// Remembers the message and gives the number.
int fail(const base::Error& error);
int fail(base::Code code, std::string message);
// For what came from below, where nobody knows which function was called.
int fail(const char* function, const base::Error& error);
// For the handler of an entry point, as nothing is thrown across the C API: most often, memory was
// refused. Other kinds of exception are not caught: a thread that is cancelled unwinds by one.
int fail(const char* function, const std::exception& thrown) noexcept;

}  // namespace unisono::api
