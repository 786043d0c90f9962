// SPDX-License-Identifier: BSD-3-Clause
// The extension module unisono.torch._c10d: makes back ends for unisono/torch/__init__.py.
#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>
#include <unistd.h>

#include <atomic>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "backend.hpp"
#include "exit/living_groups.hpp"
#include "signals.hpp"

namespace unisono::pytorch {

namespace py = pybind11;

namespace {

thread_local bool is_of_python = true;
thread_local bool ends_interpreter = false;
std::atomic<bool> has_end_begun = false;

bool has_lost_python() {
  return has_end_begun.load(std::memory_order_relaxed) && !ends_interpreter;
}

}  // namespace

void note_end_of_interpreter() {
  ends_interpreter = true;
  has_end_begun = true;
}

void stay_if_interpreter_ends() {
  if (!has_lost_python() || !is_of_python) [[likely]]
    return;
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) PyEval_SaveThread();
  for (;;) pause();
}

void leave_signals_to_others() { is_of_python = false; }

std::exception_ptr exception_of_signals() {
  if (!is_of_python || has_lost_python() || Py_IsInitialized() == 0) return nullptr;
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() == 0) return nullptr;
  return std::make_exception_ptr(py::error_already_set());
}

void without_gil(const std::function<void()>& wait) {
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) {
    const py::gil_scoped_release release;
    wait();
  } else {
    wait();
  }
}

}  // namespace unisono::pytorch

PYBIND11_MODULE(_c10d, module) {
  using namespace unisono::pytorch;  // NOLINT: the one function outside it
  module.attr("torch_version") = UNISONO_TORCH_VERSION;
  module.def(
      "create",
      [](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
         std::chrono::milliseconds timeout) -> c10::intrusive_ptr<c10d::Backend> {
        const auto made = c10::make_intrusive<Backend>(store, rank, size, timeout);
        remember(made);
        return made;
      },
      py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"),
      py::call_guard<py::gil_scoped_release>());
  module.def("end_living_groups", &end_living_groups, py::arg("grace"),
             py::call_guard<py::gil_scoped_release>());
  module.def(
      "average_as_bfloat16",
      [](const c10::intrusive_ptr<c10d::Backend>& backend,
         const at::Tensor& tensor) -> c10::intrusive_ptr<c10d::Work> {
        auto* const ours = dynamic_cast<Backend*>(backend.get());
        TORCH_CHECK_TYPE(ours != nullptr, "the group's back end is not unisono");
        return ours->average_as_bfloat16(tensor);
      },
      py::arg("backend"), py::arg("tensor"), py::call_guard<py::gil_scoped_release>());
}
