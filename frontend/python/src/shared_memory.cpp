// SPDX-License-Identifier: BSD-3-Clause
#include "shared_memory.hpp"

#include <limits>

#include "errors.hpp"

namespace unisono::python {

namespace nb = nanobind;

namespace {

int lend_shared_memory(PyObject* self, Py_buffer* view, int flags) {
  const auto* const memory = nb::inst_ptr<SharedMemory>(nb::handle(self));
  return PyBuffer_FillInfo(view, self, memory->data(), memory->bytes(), 0, flags);
}

PyType_Slot shared_memory_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(&lend_shared_memory)}, {0, nullptr}};

}  // namespace

// Not a Use: other threads may be in a call on the communicator meanwhile.
SharedMemory::SharedMemory(const Communicator& communicator, std::uint64_t bytes) {
  const Visit visit;
  communicator.require_open();
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<Py_ssize_t>::max())) {
    raise(UNISONO_ERROR_ARGUMENT, "an array of " + std::to_string(bytes) + " bytes is too long");
  }
  check(unisono_memory_alloc(communicator.handle(), bytes, &data_));
  bytes_ = static_cast<Py_ssize_t>(bytes);
}

// A forked child frees nothing: the library refuses, because the block is the parent's.
SharedMemory::~SharedMemory() { unisono_memory_free(data_); }

void define_shared_memory(nb::module_& module) {
  nb::class_<SharedMemory>(module, "SharedMemory", nb::type_slots(shared_memory_slots))
      .def(nb::init<const Communicator&, std::uint64_t>());
}

}  // namespace unisono::python
