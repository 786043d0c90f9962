// SPDX-License-Identifier: BSD-3-Clause
#include "array.hpp"

#include <nanobind/stl/string.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "errors.hpp"
#include "numpy/ndarray.hpp"

namespace unisono::python {
namespace {

namespace nb = nanobind;

// Where an empty array has no memory.
char nothing[64];

Element known(unisono_type_t type) { return {type, false, false}; }

Element integer(bool is_signed, std::int64_t bytes) {
  switch (bytes) {
    case 1:
      return known(is_signed ? UNISONO_INT8 : UNISONO_UINT8);
    case 2:
      return known(is_signed ? UNISONO_INT16 : UNISONO_UINT16);
    case 4:
      return known(is_signed ? UNISONO_INT32 : UNISONO_UINT32);
    case 8:
      return known(is_signed ? UNISONO_INT64 : UNISONO_UINT64);
    default:
      return {};
  }
}

Element boolean() { return {UNISONO_UINT8, false, true}; }

// One code of Python's struct module.
Element element_of_code(char code, std::int64_t bytes) {
  switch (code) {
    case '?':
      return boolean();
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return integer(true, bytes);
    case 'c':
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return integer(false, bytes);
    case 'e':
      return known(UNISONO_FLOAT16);
    case 'f':
      return known(UNISONO_FLOAT32);
    case 'd':
      return known(UNISONO_FLOAT64);
    default:
      return {};
  }
}

// A structure of a value and an index, as "T{d:value:i:index:4x}": the codes without names, byte
// order and padding are two. More bytes before the index than its alignment needs are refused.
Element pair_of(const char* format, std::int64_t bytes) {
  std::string codes;
  long padding = 0;  // before the code at hand
  for (const char* at = format; *at != 0; ++at) {
    long repeats = 1;
    if (*at >= '0' && *at <= '9') {
      char* end = nullptr;
      repeats = std::strtol(at, &end, 10);
      at = end;
      if (*at != 'x' && repeats != 1) return {};
    }
    if (*at == ':') {
      at = std::strchr(at + 1, ':');
      if (at == nullptr) return {};
    } else if (*at == '>' || *at == '!' || *at == 0) {
      return {};
    } else if (*at == 'x') {
      padding += repeats;
    } else if (std::strchr("@=<^", *at) == nullptr) {
      const bool is_index_of_short = codes == "h";
      if (*at != '}' && padding > (is_index_of_short ? 2 : 0)) return {};
      codes += *at;
      padding = 0;
    }
  }
  constexpr std::pair<const char*, unisono_type_t> kPairs[] = {
      {"hi", UNISONO_INT16_INT32}, {"ii", UNISONO_INT32_INT32},   {"li", UNISONO_INT64_INT32},
      {"qi", UNISONO_INT64_INT32}, {"fi", UNISONO_FLOAT32_INT32}, {"di", UNISONO_FLOAT64_INT32}};
  for (const auto& [pair, type] : kPairs) {
    const bool is_it = codes == std::string(pair) + "}" &&
                       unisono_type_size(type) == static_cast<std::size_t>(bytes);
    if (is_it) return known(type);
  }
  return {};
}

// Whether elements hold pointers to Python's objects, which mean nothing in another process.
bool has_objects(const char* format) {
  for (const char* at = format; at != nullptr && *at != 0; ++at) {
    if (*at == 'O') return true;
    if (*at == ':') at = std::strchr(at + 1, ':');
    if (at == nullptr) return false;
  }
  return false;
}

Element element_of_tensor(const DlTensor& tensor) {
  const int bytes = tensor.bits() / 8;
  switch (tensor.kind()) {
    case DlTensor::Kind::integer:
      return integer(true, bytes);
    case DlTensor::Kind::unsigned_:
      return integer(false, bytes);
    case DlTensor::Kind::boolean:
      return bytes == 1 ? boolean() : Element{};
    case DlTensor::Kind::bfloat:
      return bytes == 2 ? known(UNISONO_BFLOAT16) : Element{};
    case DlTensor::Kind::floating:
      if (bytes == 2) return known(UNISONO_FLOAT16);
      if (bytes == 4) return known(UNISONO_FLOAT32);
      return bytes == 8 ? known(UNISONO_FLOAT64) : Element{};
    case DlTensor::Kind::complex:
      if (bytes == 8) return known(UNISONO_COMPLEX64);
      return bytes == 16 ? known(UNISONO_COMPLEX128) : Element{};
    case DlTensor::Kind::opaque:
      return {};
  }
  return {};
}

[[noreturn]] void not_contiguous(const char* name) {
  throw BadArgument(std::string(name) +
                    " is not contiguous in C order; pass a copy that is, as of "
                    "numpy.ascontiguousarray()");
}

[[noreturn]] void read_only(const char* name) {
  throw BadArgument(std::string(name) + " is read-only, and the collective writes to it");
}

}  // namespace

// An import may hand the GIL to another thread. That thread would wait, with the GIL, for the lock
// of a local static's initialization; so the pointer has none. All importers get the same module.
nb::handle arrays_module() {
  static constinit PyObject* module = nullptr;
  if (module == nullptr) {
    nb::object imported = nb::module_::import_("unisono._arrays");
    module = imported.release().ptr();
  }
  return module;
}

bool is_number(nb::handle object) {
  if (is_trusted_ndarray(object)) [[likely]]
    return false;
  learn_ndarrays();
  if (is_numpy_scalar(object)) return true;
  return PyObject_CheckBuffer(object.ptr()) == 0 && !nb::hasattr(object, "__dlpack__") &&
         PyNumber_Check(object.ptr()) != 0;
}

Element Array::element_of(const char* format, std::int64_t item_bytes) {
  if (format == nullptr) return known(UNISONO_UINT8);
  if (format[0] != 0 && format[1] == 0) [[likely]]
    return element_of_code(format[0], item_bytes);
  if (std::strncmp(format, "T{", 2) == 0) return pair_of(format + 2, item_bytes);
  const bool is_swapped = *format == '>' || *format == '!';
  if (is_swapped && item_bytes > 1) return {};
  if (std::strchr("@=<>!", *format) != nullptr && *format != 0) ++format;
  if (std::strcmp(format, "Zf") == 0) return known(UNISONO_COMPLEX64);
  if (std::strcmp(format, "Zd") == 0) return known(UNISONO_COMPLEX128);
  return format[0] != 0 && format[1] == 0 ? element_of_code(format[0], item_bytes) : Element{};
}

void Array::take(nb::handle object, Use use, const char* name) {
  name_ = name;
  if (is_trusted_ndarray(object) && take_fields(object, use)) [[likely]] {
  } else if (PyObject_CheckBuffer(object.ptr()) != 0) {
    learn_ndarrays();
    if (is_derived_ndarray(object) && nb::cast<bool>(arrays_module().attr("has_mask")(object))) {
      throw BadArgument(std::string(name) +
                        " has masked elements; pass an array without a mask, as of its filled()");
    }
    if (use == Use::input && is_numpy_scalar(object)) {
      take_scalar(object);
    } else if (!take_buffer(object, use)) {
      take_converted(object, use);
    }
  } else if (nb::hasattr(object, "__dlpack__")) {
    take_dlpack(object, use);
  } else if (use == Use::input && PyNumber_Check(object.ptr()) != 0) {
    const nb::object array = arrays_module().attr("of_number")(object);
    take_buffer(array, use);
    is_number_ = true;
  } else {
    const std::string type = nb::cast<std::string>(nb::str(nb::handle(object.type())));
    throw BadArgument(
        std::string(name) + " is a " + type + ", which has neither the buffer protocol nor DLPack",
        BadArgument::Kind::type);
  }
  if (data_ == nullptr && count_ == 0) data_ = nothing;
}

void Array::stands_for(nb::handle number) {
  is_number_ = true;
  is_of_numpy_ = is_numpy_scalar(number);
}

void Array::release() {
  if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
}

// False if the buffer protocol has to describe the array, or to say what is wrong with it.
bool Array::take_fields(nb::handle object, Use use) {
  const NdarrayView view = fields_of(object);
  const bool is_usable =
      view.is_contiguous && view.is_native && (use == Use::input || view.is_writable);
  const Element element = element_of_number(view.type_number, item_bytes_);
  if (!is_usable || element.is_opaque) return false;
  ndarray_ = nb::borrow(object);
  extents_ = view.extents;
  dimensions_ = view.dimensions;
  data_ = view.data;
  count_ = view.count();
  element_ = element;
  return true;
}

// False if the array has elements that the buffer protocol does not know.
bool Array::take_buffer(nb::handle object, Use use) {
  constexpr int kFlags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT;
  if (PyObject_GetBuffer(object.ptr(), &buffer_, kFlags) != 0) {
    PyErr_Clear();
    buffer_.obj = nullptr;
    if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      buffer_.obj = nullptr;
      return false;
    }
    PyBuffer_Release(&buffer_);
    not_contiguous(name_);
  }
  if (use == Use::output && buffer_.readonly != 0) {
    PyBuffer_Release(&buffer_);
    read_only(name_);
  }
  if (has_objects(buffer_.format)) {
    PyBuffer_Release(&buffer_);
    throw BadArgument(std::string(name_) + " holds Python objects; pickle them",
                      BadArgument::Kind::type);
  }
  data_ = buffer_.buf;
  item_bytes_ = buffer_.itemsize;
  count_ = item_bytes_ > 0 ? buffer_.len / item_bytes_ : 0;
  element_ = element_of(buffer_.format, item_bytes_);
  return true;
}

// A date or a text of NumPy lends a buffer of bytes; an array of it has one element.
void Array::take_scalar(nb::handle object) {
  const bool is_taken = take_buffer(object, Use::input);
  if (!is_taken || count_ != 1) {
    release();
    const nb::object array = arrays_module().attr("of_scalar")(object);
    if (!take_buffer(array, Use::input)) take_converted(array, Use::input);
  }
  is_number_ = is_of_numpy_ = true;
}

// NumPy's bfloat16, datetime64 and others: moved as integers of their length.
void Array::take_converted(nb::handle object, Use use) {
  const nb::tuple converted =
      nb::cast<nb::tuple>(arrays_module().attr("of_other_elements")(object));
  if (converted[0].is_none()) {
    throw BadArgument(std::string(name_) + " has elements of a type that cannot be sent: " +
                          nb::cast<std::string>(converted[1]),
                      BadArgument::Kind::type);
  }
  if (!take_buffer(converted[0], use)) {
    throw BadArgument(std::string(name_) + " lends no buffer", BadArgument::Kind::type);
  }
  element_ =
      nb::cast<std::string>(converted[1]) == "bfloat16" ? known(UNISONO_BFLOAT16) : Element{};
}

void Array::take_dlpack(nb::handle object, Use use) {
  // PyTorch would lend memory whose numbers have another sign than those of the tensor.
  if (nb::hasattr(object, "is_neg") && nb::cast<bool>(object.attr("is_neg")())) {
    throw BadArgument(std::string(name_) + " has the negative bit; pass its resolve_neg()");
  }
  tensor_ = std::make_unique<DlTensor>(object, name_);
  if (!tensor_->is_contiguous()) not_contiguous(name_);
  if (use == Use::output && tensor_->is_read_only()) read_only(name_);
  if (tensor_->bits() % 8 != 0) {
    throw BadArgument(std::string(name_) + " has elements smaller than a byte",
                      BadArgument::Kind::type);
  }
  data_ = tensor_->data();
  count_ = 1;
  for (const std::int64_t extent : tensor_->shape()) count_ *= extent;
  item_bytes_ = tensor_->bits() / 8;
  element_ = element_of_tensor(*tensor_);
}

std::vector<std::int64_t> Array::shape() const {
  if (tensor_ != nullptr) return tensor_->shape();
  if (ndarray_.is_valid()) return {extents_, extents_ + dimensions_};
  if (buffer_.ndim == 0) return {};
  if (buffer_.shape == nullptr) return {count_};
  return {buffer_.shape, buffer_.shape + buffer_.ndim};
}

std::string Array::type_name() const {
  constexpr const char* kNames[] = {"byte",     "int8",    "int16",   "int32",     "int64",
                                    "uint8",    "uint16",  "uint32",  "uint64",    "float16",
                                    "bfloat16", "float32", "float64", "complex64", "complex128"};
  if (element_.is_opaque) return "elements of " + std::to_string(item_bytes_) + " bytes";
  if (element_.is_bool) return "bool";
  const auto type = static_cast<std::size_t>(element_.type);
  return type < std::size(kNames) ? kNames[type] : "pairs of a value and an index";
}

}  // namespace unisono::python
