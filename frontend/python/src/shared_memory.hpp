// SPDX-License-Identifier: BSD-3-Clause
// SharedMemory: a block that all ranks of the host can read, lent by the buffer protocol. An array
// over it keeps it alive, so it outlives its communicator if the array does. Callers hold the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "communicator.hpp"

namespace unisono::python {

class SharedMemory {
 public:
  // Throws ResourcesError, or StateError for a communicator that has ended. An allocation is of
  // this rank alone, so the communicator goes on.
  SharedMemory(const Communicator& communicator, std::uint64_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void* data() const { return data_; }
  Py_ssize_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  Py_ssize_t bytes_ = 0;
};

void define_shared_memory(nanobind::module_& module);

}  // namespace unisono::python
