// SPDX-License-Identifier: BSD-3-Clause
// DlTensor: a tensor that another library lends through DLPack (`__dlpack__`), and gets back at the
// end. The structures are those of DLPack 1.0's ABI, as far as they are read here. Callers hold the
// GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

namespace unisono::python {

class DlTensor {
 public:
  enum class Kind : std::uint8_t {
    integer = 0,
    unsigned_ = 1,
    floating = 2,
    opaque = 3,
    bfloat = 4,
    complex = 5,
    boolean = 6
  };

  // Throws BadArgument, or the exception of the lender.
  DlTensor(nanobind::handle object, const char* name);
  ~DlTensor();
  DlTensor(const DlTensor&) = delete;
  DlTensor& operator=(const DlTensor&) = delete;

  void* data() const { return data_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  bool is_contiguous() const { return is_contiguous_; }
  bool is_read_only() const { return is_read_only_; }
  Kind kind() const { return kind_; }
  int bits() const { return bits_; }

 private:
  void read(const struct DlView& view, const char* name);

  // Some lenders free the structure with their capsule, so it lives until after the tensor.
  nanobind::object capsule_;
  void* owner_ = nullptr;  // DLManagedTensor or DLManagedTensorVersioned
  void (*give_back_)(void*) = nullptr;
  void* data_ = nullptr;
  std::vector<std::int64_t> shape_;
  bool is_contiguous_ = true;
  bool is_read_only_ = false;
  Kind kind_ = Kind::opaque;
  int bits_ = 8;
};

}  // namespace unisono::python
