// SPDX-License-Identifier: BSD-3-Clause
// The library's own threads: an application's signal handlers do not run in them, and what lists
// threads (top -H, gdb) tells whose they are.
#pragma once

#include <functional>
#include <thread>

#include "base/result.hpp"

namespace unisono::base {

// `name`: at most 15 characters, as the system wants. The error, Code::resources, says what the
// system has refused; the caller adds what the thread was for.
Result<std::thread> start_thread(const char* name, std::function<void()> body);

}  // namespace unisono::base
