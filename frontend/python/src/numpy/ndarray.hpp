// SPDX-License-Identifier: BSD-3-Clause
// NdarrayView: what an array of NumPy holds, read from its fields. NumPy's buffer protocol takes
// longer than all else of a short call. Once trusted, arrays of plain numbers are read so; others
// go by the buffer protocol. Callers hold the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "array.hpp"

namespace unisono::python {

struct NdarrayView {
  void* data = nullptr;
  const std::int64_t* extents = nullptr;  // of the array, which may replace them later
  int dimensions = 0;
  int type_number = 0;
  bool is_contiguous = false, is_writable = false, is_native = false;

  std::int64_t count() const;
};

// False: no ndarray itself (a subclass may mean something else), or not trusted yet.
bool is_trusted_ndarray(nanobind::handle object);
// An array of a class derived from ndarray. False until learn_ndarrays() has found NumPy.
bool is_derived_ndarray(nanobind::handle object);
// A single element, such as numpy.float64(2). False until learn_ndarrays() has found NumPy.
bool is_numpy_scalar(nanobind::handle object);
NdarrayView fields_of(nanobind::handle ndarray);
// Its elements and their length; opaque for types that the buffer protocol has to describe.
Element element_of_number(int type_number, std::int64_t& item_bytes);
// Compares the fields of samples with what NumPy says of them (unisono/_arrays.py), once NumPy is
// imported, and trusts arrays if they agree. Looks once.
void learn_ndarrays();
void define_ndarray(nanobind::module_& module);

}  // namespace unisono::python
