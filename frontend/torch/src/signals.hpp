// SPDX-License-Identifier: BSD-3-Clause
// Python's signals and its lock, for threads that wait in C++ without it.
#pragma once

#include <exception>
#include <functional>

namespace unisono::pytorch {

// Runs Python's handlers if the calling thread is Python's main one and a signal has come. Returns
// the exception that a handler has raised, or null.
std::exception_ptr exception_of_signals();
// Calls `wait` without the GIL, if the calling thread holds it: threads that are waited for may
// need it to release a tensor.
void without_gil(const std::function<void()>& wait);

}  // namespace unisono::pytorch
