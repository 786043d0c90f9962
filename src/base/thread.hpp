// SPDX-License-Identifier: BSD-3-Clause
// The library's own threads: an application's signal handlers do not run in them, and what lists
// threads (top -H, gdb) tells whose they are.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "base/result.hpp"

namespace unisono::base {

// `name`: at most 15 characters, as the system wants. The error, Code::resources, says what the
// system has refused; the caller adds what the thread was for.
Result<std::thread> start_thread(const char* name, std::function<void()> body);

// Of something that may never return. A future of std::async waits for its thread when it is given
// up; this one leaves the thread alone, so `body` owns all that it uses.
template <class T>
Result<std::future<T>> start_aside(const char* name, std::function<T()> body) {
  auto task = std::make_shared<std::packaged_task<T()>>(std::move(body));
  std::future<T> outcome = task->get_future();
  UNISONO_ASSIGN(std::thread started, start_thread(name, [task] { (*task)(); }));
  started.detach();
  return outcome;
}

}  // namespace unisono::base
