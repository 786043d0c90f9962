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

std::string text_of(const nb::python_error& error) {
  std::string text = nb::cast<std::string>(error.type().attr("__name__"));
  const nb::object said = nb::steal(PyObject_Str(error.value().ptr()));
  if (!said.is_valid()) {
    PyErr_Clear();
  } else if (nb::len(said) > 0) {
    // Half of a surrogate pair is in no text of C.
    const nb::bytes known(said.attr("encode")("utf-8", "backslashreplace"));
    text += ": " + std::string(known.c_str(), known.size());
  }
  return text;
}

void raise_because_of(nb::python_error& error, const std::string& message, int rank) {
  const nb::module_ errors = nb::module_::import_("unisono._errors");
  const nb::object own = errors.attr("Error");
  const bool is_passed_on =
      !error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError) || error.matches(own);
  if (is_passed_on) return;
  const int code = error.matches(PyExc_TypeError) ? UNISONO_ERROR_TYPE : UNISONO_ERROR_ARGUMENT;
  const nb::object exception = errors.attr("make")(code, message, rank);
  PyException_SetCause(exception.ptr(), Py_NewRef(error.value().ptr()));
  raise(exception);
}

void check(int code) {
  if (code != UNISONO_OK) [[unlikely]]
    raise(code, unisono_last_error());
}

}  // namespace unisono::python
