// SPDX-License-Identifier: BSD-3-Clause
#include "errors.hpp"

#include <nanobind/stl/string.h>

namespace unisono::python {

namespace nb = nanobind;

void raise(int code, const std::string& message, int rank) {
  raise(nb::module_::import_("unisono._errors").attr("make")(code, message, rank));
}

void raise(const nb::object& exception) {
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
  throw nb::python_error();
}

void check(int code) {
  if (code != UNISONO_OK) [[unlikely]]
    raise(code, unisono_last_error());
}

}  // namespace unisono::python
