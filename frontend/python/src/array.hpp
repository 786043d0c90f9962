// SPDX-License-Identifier: BSD-3-Clause
// Array: the memory of a caller's array, found by the fields of NumPy's arrays, by the buffer
// protocol or by DLPack, and kept alive for as long as this object lives. It is contiguous in C
// order, and in host memory. Callers hold the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <unisono/unisono.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dlpack.hpp"

namespace unisono::python {

// An element as a collective sees it. An opaque one can be moved, but not reduced.
struct Element {
  unisono_type_t type = UNISONO_BYTE;
  bool is_opaque = true;
  bool is_bool = false;
  friend bool operator==(const Element&, const Element&) = default;
};

// A number of Python or a scalar of NumPy, for which take() makes an array of one element.
bool is_number(nanobind::handle object);
// unisono/_arrays.py: what arrays need of NumPy.
nanobind::handle arrays_module();

class Array {
 public:
  enum class Use { input, output };

  Array() = default;
  ~Array() { release(); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  // Once, before all else. `name` is that of the argument, for messages. Throws BadArgument.
  void take(nanobind::handle object, Use use, const char* name);

  void* data() const { return data_; }
  std::int64_t count() const { return count_; }
  std::int64_t item_bytes() const { return item_bytes_; }
  std::int64_t bytes() const { return count_ * item_bytes_; }
  const Element& element() const { return element_; }
  const char* name() const { return name_; }
  // Only tensors by DLPack say so: buffers that are written are asked for as such.
  bool is_read_only() const { return tensor_ != nullptr && tensor_->is_read_only(); }
  // Whether the caller passed a number, of Python or of NumPy.
  bool is_number() const { return is_number_; }
  // Before take(): the caller passed a number, and take() gets an array of it.
  void stands_for(nanobind::handle number);
  bool is_of_numpy() const { return is_of_numpy_; }
  // While the arguments are looked at: an array may get another shape later.
  std::vector<std::int64_t> shape() const;
  // The element's type, as messages name it.
  std::string type_name() const;

  // The element for a format of the buffer protocol.
  static Element element_of(const char* format, std::int64_t item_bytes);

 private:
  bool take_fields(nanobind::handle object, Use use);
  bool take_buffer(nanobind::handle object, Use use);
  void take_scalar(nanobind::handle object);
  void take_converted(nanobind::handle object, Use use);
  void take_dlpack(nanobind::handle object, Use use);
  void release();

  Py_buffer buffer_{};                // obj is null: not taken
  std::unique_ptr<DlTensor> tensor_;  // or this one
  nanobind::object ndarray_;          // or this one, with the next two
  const std::int64_t* extents_ = nullptr;
  int dimensions_ = 0;
  void* data_ = nullptr;
  std::int64_t count_ = 0;
  std::int64_t item_bytes_ = 1;
  Element element_;
  const char* name_ = "";
  bool is_number_ = false, is_of_numpy_ = false;
};

}  // namespace unisono::python
