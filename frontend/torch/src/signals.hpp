// SPDX-License-Identifier: BSD-3-Clause
// Python's signals and its lock, for threads that wait in C++ without it.
#pragma once

#include <exception>
#include <functional>

namespace unisono::pytorch {

// Runs Python's handlers if the calling thread is Python's main one and a signal has come. Returns
// the exception that a handler has raised, or null.
std::exception_ptr exception_of_signals();
// For a thread that is none of Python's: exception_of_signals() then never takes the GIL.
void leave_signals_to_others();
// The calling thread ends the interpreter. Python before 3.14 ends another thread that then takes
// the GIL in the middle of its C++ functions, and with it the process. So other threads of Python
// that come back from a call stay in stay_if_interpreter_ends() until the process ends.
void note_end_of_interpreter();
void stay_if_interpreter_ends();
// For a block of a thread that may be one of Python's.
struct StayAtEnd {
  StayAtEnd() = default;
  ~StayAtEnd() { stay_if_interpreter_ends(); }
  StayAtEnd(const StayAtEnd&) = delete;
  StayAtEnd& operator=(const StayAtEnd&) = delete;
};
// Calls `wait` without the GIL, if the calling thread holds it: threads that are waited for may
// need it to release a tensor.
void without_gil(const std::function<void()>& wait);

}  // namespace unisono::pytorch
