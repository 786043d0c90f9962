// SPDX-License-Identifier: BSD-3-Clause
// Whole: an argument that is a whole number, as Python's operator.index has it: an int, a bool, an
// integer of NumPy, a member of an IntEnum. A call takes any object and refuses what is no whole
// number itself, so that it can name the argument and tell the other ranks. Callers hold the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace unisono::python {

// A number that the caller passes as `name`. Throws BadArgument if the object is no whole number,
// or one that the type cannot hold. There are an int, a std::int64_t and a std::uint64_t.
template <class Integer>
Integer whole(nanobind::handle object, const char* name);

struct Whole {
  nanobind::handle object;

  template <class Integer = int>
  Integer value(const char* name) const {
    return whole<Integer>(object, name);
  }
};

}  // namespace unisono::python

namespace nanobind::detail {

template <>
struct type_caster<unisono::python::Whole> {
  NB_TYPE_CASTER(unisono::python::Whole, const_name("int"))

  // The type of flags differs between versions of nanobind.
  template <class Flags>
  bool from_python(handle object, Flags, cleanup_list*) noexcept {
    value.object = object;
    return true;
  }
};

}  // namespace nanobind::detail
