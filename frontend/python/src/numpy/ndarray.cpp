// SPDX-License-Identifier: BSD-3-Clause
#include "numpy/ndarray.hpp"

#include <iterator>

namespace unisono::python {

namespace nb = nanobind;

namespace {

// PyArrayObject_fields and the beginning of PyArray_Descr: part of NumPy's binary interface, alike
// in versions 1 and 2.
struct Descriptor {
  PyObject head;
  PyTypeObject* scalar;
  char kind, letter, byte_order, flags;
  int number;
};
struct Fields {
  PyObject head;
  char* data;
  int dimensions;
  std::int64_t* extents;
  std::int64_t* strides;
  PyObject* base;
  Descriptor* descriptor;
  int flags;
};
constexpr int kContiguous = 0x1, kWritable = 0x400;
static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));

PyTypeObject* trusted = nullptr;  // ndarray, which NumPy never frees
PyTypeObject* scalar = nullptr;   // generic, of which the types of NumPy's scalars are derived
bool has_looked = false;

struct Number {
  unisono_type_t type;
  std::int64_t bytes;
  bool is_known = true;
};
constexpr Number kUnknown{UNISONO_BYTE, 1, false};
// By NumPy's type numbers, from NPY_BOOL to NPY_HALF.
constexpr Number kNumbers[] = {{UNISONO_UINT8, 1},
                               {UNISONO_INT8, 1},
                               {UNISONO_UINT8, 1},
                               {UNISONO_INT16, 2},
                               {UNISONO_UINT16, 2},
                               {UNISONO_INT32, 4},
                               {UNISONO_UINT32, 4},
                               {UNISONO_INT64, 8},
                               {UNISONO_UINT64, 8},
                               {UNISONO_INT64, 8},
                               {UNISONO_UINT64, 8},
                               {UNISONO_FLOAT32, 4},
                               {UNISONO_FLOAT64, 8},
                               kUnknown,
                               {UNISONO_COMPLEX64, 8},
                               {UNISONO_COMPLEX128, 16},
                               kUnknown,
                               kUnknown,
                               kUnknown,
                               kUnknown,
                               kUnknown,
                               kUnknown,
                               kUnknown,
                               {UNISONO_FLOAT16, 2}};

}  // namespace

std::int64_t NdarrayView::count() const {
  std::int64_t product = 1;
  for (int i = 0; i < dimensions; ++i) product *= extents[i];
  return product;
}

bool is_trusted_ndarray(nb::handle object) { return Py_TYPE(object.ptr()) == trusted; }

bool is_derived_ndarray(nb::handle object) {
  return trusted != nullptr && Py_TYPE(object.ptr()) != trusted &&
         PyType_IsSubtype(Py_TYPE(object.ptr()), trusted) != 0;
}

bool is_numpy_scalar(nb::handle object) {
  return scalar != nullptr && PyType_IsSubtype(Py_TYPE(object.ptr()), scalar) != 0;
}

NdarrayView fields_of(nb::handle ndarray) {
  const auto& fields = *reinterpret_cast<const Fields*>(ndarray.ptr());
  const char order = fields.descriptor->byte_order;
  return {fields.data,
          fields.extents,
          fields.dimensions,
          fields.descriptor->number,
          (fields.flags & kContiguous) != 0,
          (fields.flags & kWritable) != 0,
          order == '=' || order == '|'};
}

Element element_of_number(int type_number, std::int64_t& item_bytes) {
  const bool is_in_table = type_number >= 0 && type_number < std::ssize(kNumbers);
  const Number& number = is_in_table ? kNumbers[type_number] : kUnknown;
  if (!number.is_known) return {};
  item_bytes = number.bytes;
  return {number.type, false, type_number == 0};
}

void learn_ndarrays() {
  if (has_looked) return;
  PyObject* const numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
  if (numpy == nullptr || PyObject_HasAttrString(numpy, "ndarray") == 0) return;
  has_looked = true;
  try {
    scalar = reinterpret_cast<PyTypeObject*>(nb::handle(numpy).attr("generic").ptr());
    if (!nb::cast<bool>(arrays_module().attr("has_known_fields")())) return;
  } catch (const nb::python_error&) {  // of a NumPy that lacks something: the protocol serves it
    return;
  }
  trusted = reinterpret_cast<PyTypeObject*>(nb::object(nb::handle(numpy).attr("ndarray")).ptr());
}

void define_ndarray(nb::module_& module) {
  module.def("fields_of", [](nb::handle ndarray) {
    const NdarrayView view = fields_of(ndarray);
    nb::list extents;
    for (int i = 0; i < view.dimensions; ++i) extents.append(view.extents[i]);
    std::int64_t item_bytes = 0;
    const Element element = element_of_number(view.type_number, item_bytes);
    return nb::make_tuple(reinterpret_cast<std::uintptr_t>(view.data), nb::tuple(extents),
                          view.is_contiguous, view.is_writable, view.is_native,
                          element.is_opaque ? -1 : static_cast<int>(element.type), item_bytes);
  });
}

}  // namespace unisono::python
