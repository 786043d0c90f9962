// SPDX-License-Identifier: BSD-3-Clause
#include "dlpack.hpp"

#include <string>

#include "errors.hpp"

namespace unisono::python {

namespace nb = nanobind;

// DLTensor
struct DlView {
  void* data;
  std::int32_t device_type;
  std::int32_t device_id;
  std::int32_t dimensions;
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
  const std::int64_t* shape;
  const std::int64_t* strides;  // null: contiguous
  std::uint64_t byte_offset;
};

namespace {

// DLManagedTensor
struct Managed {
  DlView view;
  void* context;
  void (*deleter)(Managed*);
};

// DLManagedTensorVersioned
struct VersionedManaged {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(VersionedManaged*);
  std::uint64_t flags;
  DlView view;
};

constexpr std::uint64_t kReadOnly = 1;
constexpr std::uint32_t kMajor = 1;

// The values of DLDeviceType for memory that this process reads and writes as its own.
constexpr std::int32_t kCpu = 1, kCudaHost = 3, kRocmHost = 11;

template <class Tensor>
void give_back(void* owner) {
  auto* const tensor = static_cast<Tensor*>(owner);
  if (tensor->deleter != nullptr) tensor->deleter(tensor);
}

// Older libraries do not know the argument.
nb::object capsule_of(nb::handle object) {
  try {
    return object.attr("__dlpack__")(nb::arg("max_version") = nb::make_tuple(kMajor, 0));
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return object.attr("__dlpack__")();
}

}  // namespace

DlTensor::DlTensor(nb::handle object, const char* name) : capsule_(capsule_of(object)) {
  PyObject* const raw = capsule_.ptr();
  if (PyCapsule_IsValid(raw, "dltensor_versioned")) {
    auto* const tensor =
        static_cast<VersionedManaged*>(PyCapsule_GetPointer(raw, "dltensor_versioned"));
    if (tensor->major > kMajor) {
      throw BadArgument(std::string(name) + " comes by a newer version of DLPack",
                        BadArgument::Kind::type);
    }
    PyCapsule_SetName(raw, "used_dltensor_versioned");
    owner_ = tensor;
    give_back_ = &give_back<VersionedManaged>;
    is_read_only_ = (tensor->flags & kReadOnly) != 0;
    read(tensor->view, name);
  } else if (PyCapsule_IsValid(raw, "dltensor")) {
    auto* const tensor = static_cast<Managed*>(PyCapsule_GetPointer(raw, "dltensor"));
    PyCapsule_SetName(raw, "used_dltensor");
    owner_ = tensor;
    give_back_ = &give_back<Managed>;
    read(tensor->view, name);
  } else {
    throw BadArgument(std::string(name) + ".__dlpack__() gave no tensor", BadArgument::Kind::type);
  }
}

DlTensor::~DlTensor() {
  if (owner_ != nullptr) give_back_(owner_);
}

void DlTensor::read(const DlView& view, const char* name) {
  // The object is not there yet, so its destructor would not give the tensor back.
  const auto refuse = [&](const std::string& why) {
    give_back_(std::exchange(owner_, nullptr));
    throw BadArgument(std::string(name) + why, BadArgument::Kind::type);
  };
  if (view.device_type != kCpu && view.device_type != kCudaHost && view.device_type != kRocmHost) {
    refuse(" is in the memory of a device (DLPack's type " + std::to_string(view.device_type) +
           "); copy it to the host first");
  }
  if (view.lanes != 1) refuse(" has vectors as elements");
  data_ = static_cast<char*>(view.data) + view.byte_offset;
  shape_.assign(view.shape, view.shape + view.dimensions);
  kind_ = view.code <= 6 ? static_cast<Kind>(view.code) : Kind::opaque;
  bits_ = view.bits;
  if (view.strides == nullptr) return;
  std::int64_t expected = 1;
  bool is_empty = false;
  for (std::size_t i = shape_.size(); i-- > 0;) {
    if (shape_[i] != 1 && view.strides[i] != expected) is_contiguous_ = false;
    expected *= shape_[i];
    is_empty |= shape_[i] == 0;
  }
  if (is_empty) is_contiguous_ = true;
}

}  // namespace unisono::python
