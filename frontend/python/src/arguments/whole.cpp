// SPDX-License-Identifier: BSD-3-Clause
#include "arguments/whole.hpp"

#include <limits>
#include <string>

#include "errors.hpp"

namespace unisono::python {

namespace nb = nanobind;

template <class Integer>
Integer whole(nb::handle object, const char* name) {
  const nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (!number.is_valid()) [[unlikely]] {
    PyErr_Clear();
    const nb::str what = nb::steal<nb::str>(PyUnicode_FromFormat(
        "%s is %.60R, of type %S", name, object.ptr(), nb::inst_name(object).ptr()));
    if (!what.is_valid()) throw nb::python_error();  // its text cannot be made
    throw BadArgument(std::string(what.c_str()) + "; it has to be a whole number",
                      BadArgument::Kind::type);
  }
  Integer value = 0;
  if (nb::try_cast(number, value)) [[likely]]
    return value;
  throw BadArgument(std::string(name) + " is " + nb::str(number).c_str() + "; it has to be from " +
                    std::to_string(std::numeric_limits<Integer>::min()) + " to " +
                    std::to_string(std::numeric_limits<Integer>::max()));
}

template int whole(nb::handle, const char*);
template std::int64_t whole(nb::handle, const char*);
template std::uint64_t whole(nb::handle, const char*);

}  // namespace unisono::python
