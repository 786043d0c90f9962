// SPDX-License-Identifier: BSD-3-Clause
// Tells exceptions of the drop-in's own code from those that the program's functions throw.
#pragma once

#include <exception>

namespace unisono::mpi {

// Own code throws only for want of memory, threads or other resources. All else comes from an error
// handler or an attribute function of the program: the caller throws it on, for the program waits
// for it. Any thread.
bool is_own(const std::exception& thrown);

}  // namespace unisono::mpi
