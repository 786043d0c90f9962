// SPDX-License-Identifier: BSD-3-Clause
// The library's own threads. The application's signal handlers do not run in them, and tools that
// list threads (top -H, gdb) show their names.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/result.hpp"

namespace unisono::base {

// `name`: at most 15 characters, the limit of the system. The error, Code::resources, says what the
// system has refused; the caller adds the purpose of the thread.
Result<std::thread> start_thread(const char* name, std::function<void()> body);

// Runs a function that may never return in a thread of its own. The destructor of a std::async
// future would wait for its thread; this future does not. So `body` must own all that it uses.
template <class T>
Result<std::future<T>> start_aside(const char* name, std::function<T()> body) {
  auto task = std::make_shared<std::packaged_task<T()>>(std::move(body));
  std::future<T> outcome = task->get_future();
  UNISONO_ASSIGN(std::thread started, start_thread(name, [task] { (*task)(); }));
  started.detach();
  return outcome;
}

// Waits for the result of such a thread. nullopt: `call` has not returned within that time, and its
// thread stays behind. This bounds the wait for library functions that have no time limit.
template <class T>
Result<std::optional<T>> call_aside(const char* name, std::function<T()> call,
                                    std::int64_t timeout_ns) {
  UNISONO_ASSIGN(std::future<T> outcome, start_aside<T>(name, std::move(call)));
  if (outcome.wait_for(std::chrono::nanoseconds(timeout_ns)) != std::future_status::ready) {
    return std::optional<T>();
  }
  return std::optional<T>(outcome.get());
}

// Calls `body` in a thread that has a table of descriptors of its own, with standard error alone,
// and waits for its end. So it can open descriptors where the process has none left. Exceptions of
// `body` go to the caller. Errors: resources (no thread), system (the kernel does not allow it).
Status call_with_own_descriptors(const char* name, const std::function<void()>& body);

}  // namespace unisono::base
