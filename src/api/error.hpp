// SPDX-License-Identifier: BSD-3-Clause
// The calling thread's last error, and the step from inner errors to the C API's numbers.
#pragma once

#include <string>

#include "base/result.hpp"

namespace unisono::api {

// Remembers the message and gives the number.
int fail(const base::Error& error);
int fail(base::Code code, std::string message);
// For what came from below, where nobody knows which function was called.
int fail(const char* function, const base::Error& error);

}  // namespace unisono::api
