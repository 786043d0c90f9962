// SPDX-License-Identifier: BSD-3-Clause
#include "tensors.hpp"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "interface/interface.hpp"

namespace unisono::pytorch {
namespace {

using Kind = BadArgument::Kind;

std::string type_name(const at::Tensor& tensor) { return c10::toString(tensor.scalar_type()); }

void require_values(const at::Tensor& tensor) {
  if (tensor.is_meta()) {
    throw BadArgument(
        "a tensor is on meta, without values; this back end takes tensors in host "
        "memory or on a device");
  }
  if (tensor.layout() != at::kStrided) throw BadArgument("a tensor is not dense; pass to_dense()");
}

// As those of expand(): only their values can be used.
void require_own_elements(const at::Tensor& tensor) {
  if (tensor.is_contiguous() || at::has_internal_overlap(tensor) != at::MemOverlap::Yes) return;
  throw BadArgument(
      "a tensor that takes a result has elements that share memory, as after expand(); pass a "
      "clone()");
}

// In host memory. A GPU copies to and from pinned memory without a copy of the driver's.
at::Tensor host_room(at::IntArrayRef sizes, const at::Tensor& like) {
  const bool is_pinned = like.is_cuda() || like.is_xpu();
  return at::empty(sizes, at::TensorOptions().dtype(like.scalar_type()).pinned_memory(is_pinned));
}

// The values of a dense tensor of a device, in host memory.
at::Tensor staged(const at::Tensor& tensor) {
  const at::Tensor room = host_room(tensor.sizes(), tensor);
  return room.copy_(tensor.resolve_conj().resolve_neg());
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

}  // namespace

Element element_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kBool:
    case at::kByte:
      return {UNISONO_UINT8, 1, true};
    case at::kChar:
      return {UNISONO_INT8, 1, true};
    case at::kShort:
      return {UNISONO_INT16, 1, true};
    case at::kInt:
      return {UNISONO_INT32, 1, true};
    case at::kLong:
      return {UNISONO_INT64, 1, true};
    case at::kUInt16:
      return {UNISONO_UINT16, 1, true};
    case at::kUInt32:
      return {UNISONO_UINT32, 1, true};
    case at::kUInt64:
      return {UNISONO_UINT64, 1, true};
    case at::kHalf:
      return {UNISONO_FLOAT16, 1, true};
    case at::kBFloat16:
      return {UNISONO_BFLOAT16, 1, true};
    case at::kFloat:
      return {UNISONO_FLOAT32, 1, true};
    case at::kDouble:
      return {UNISONO_FLOAT64, 1, true};
    case at::kComplexFloat:
      return {UNISONO_COMPLEX64, 1, true};
    case at::kComplexDouble:
      return {UNISONO_COMPLEX128, 1, true};
    case at::kComplexHalf:  // sums only
      return {UNISONO_FLOAT16, 2, true};
    default:
      return {UNISONO_BYTE, static_cast<std::int64_t>(tensor.element_size()), false};
  }
}

Flat::Flat(const at::Tensor& target, at::Tensor flat)
    : target_(target), flat_(std::move(flat)), element_(element_of(flat_)) {}

Flat Flat::input(const at::Tensor& tensor) {
  require_values(tensor);
  if (!tensor.is_cpu()) return {tensor, staged(tensor)};
  return {tensor, is_plain(tensor) ? tensor : tensor.resolve_conj().resolve_neg().contiguous()};
}

Flat Flat::output(const at::Tensor& tensor) {
  require_values(tensor);
  require_own_elements(tensor);
  return {tensor, is_plain(tensor) ? tensor : host_room(tensor.sizes(), tensor)};
}

Flat Flat::in_place(const at::Tensor& tensor) {
  require_values(tensor);
  require_own_elements(tensor);
  return input(tensor);
}

void Flat::replace(const at::Tensor& values) { flat_.copy_(values); }

void Flat::write_back() const {
  if (!flat_.is_same(target_)) target_.copy_(flat_);
}

const at::Tensor& only(const std::vector<at::Tensor>& tensors) {
  if (tensors.size() == 1) return tensors.front();
  throw BadArgument("the call takes one tensor of this rank, not " +
                    std::to_string(tensors.size()));
}

const at::Tensor& first_of(const std::vector<at::Tensor>& tensors) {
  if (!tensors.empty()) return tensors.front();
  throw BadArgument("the call has no tensor of this rank");
}

at::Tensor joined(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors) {
    require_values(tensor);
    require_type(tensor, tensors.front());
    flat.push_back(tensor.resolve_conj().resolve_neg().reshape({-1}));
  }
  const at::Tensor all = at::cat(flat);
  return all.is_cpu() ? all : staged(all);
}

at::Tensor room_for(const std::vector<at::Tensor>& tensors) {
  std::int64_t numel = 0;
  for (const at::Tensor& tensor : tensors) {
    require_values(tensor);
    require_own_elements(tensor);
    require_type(tensor, tensors.front());
    numel += tensor.numel();
  }
  return host_room({numel}, tensors.front());
}

void take_apart(const at::Tensor& joined, const std::vector<at::Tensor>& tensors) {
  std::int64_t begin = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(joined.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
    begin += tensor.numel();
  }
}

bool share_memory(const std::vector<at::Tensor>& tensors) {
  std::vector<std::pair<const char*, const char*>> places;  // begin and end
  for (const at::Tensor& tensor : tensors) {
    if (tensor.layout() != at::kStrided || tensor.numel() == 0) continue;
    std::int64_t last = 0;
    for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
    const auto* const begin = static_cast<const char*>(tensor.const_data_ptr());
    places.emplace_back(begin, begin + (last + 1) * static_cast<std::int64_t>(tensor.itemsize()));
  }
  std::ranges::sort(places);
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i].first < places[i - 1].second) return true;
  }
  return false;
}

void require_type(const at::Tensor& tensor, const at::Tensor& like) {
  if (tensor.scalar_type() == like.scalar_type()) return;
  throw BadArgument(
      "tensors have different types, " + type_name(tensor) + " and " + type_name(like), Kind::type);
}

void require_equal(const std::vector<at::Tensor>& tensors, const at::Tensor& like,
                   const char* name) {
  for (const at::Tensor& tensor : tensors) {
    require_type(tensor, like);
    if (tensor.numel() == like.numel()) continue;
    throw BadArgument("a tensor of " + std::string(name) + " has " +
                      std::to_string(tensor.numel()) + " elements, another tensor has " +
                      std::to_string(like.numel()));
  }
}

Reduction::Reduction(const c10d::ReduceOp& op, const at::Tensor& tensor) {
  using Type = c10d::ReduceOp::RedOpType;
  const bool is_bool = tensor.scalar_type() == at::kBool;
  const bool is_real = at::isFloatingType(tensor.scalar_type());
  const bool is_complex = at::isComplexType(tensor.scalar_type());
  const auto refuse = [&](const char* name) {
    throw BadArgument(std::string(name) + " does not take tensors of type " + type_name(tensor),
                      Kind::type);
  };
  if (!element_of(tensor).can_be_reduced) refuse("a reduction");
  if (tensor.scalar_type() == at::kComplexHalf && op.op_ != Type::SUM && op.op_ != Type::AVG) {
    refuse("a reduction other than SUM and AVG");
  }
  switch (op.op_) {
    case Type::SUM:
      op_ = is_bool ? UNISONO_LOGICAL_OR : UNISONO_SUM;
      return;
    case Type::AVG:
      if (is_bool) refuse("AVG");
      is_average_ = true;
      return;
    case Type::PREMUL_SUM:
      if (!is_real && !is_complex) refuse("PREMUL_SUM");
      factor_ = op.supplement_;
      return;
    case Type::PRODUCT:
      op_ = is_bool ? UNISONO_LOGICAL_AND : UNISONO_PROD;
      return;
    case Type::MIN:
      if (is_complex) refuse("MIN");
      op_ = is_bool ? UNISONO_LOGICAL_AND : UNISONO_MIN;
      return;
    case Type::MAX:
      if (is_complex) refuse("MAX");
      op_ = is_bool ? UNISONO_LOGICAL_OR : UNISONO_MAX;
      return;
    case Type::BAND:
      if (is_real || is_complex) refuse("BAND");
      op_ = UNISONO_BITWISE_AND;
      return;
    case Type::BOR:
      if (is_real || is_complex) refuse("BOR");
      op_ = UNISONO_BITWISE_OR;
      return;
    case Type::BXOR:
      if (is_real || is_complex) refuse("BXOR");
      op_ = UNISONO_BITWISE_XOR;
      return;
    case Type::UNUSED:
      break;
  }
  throw BadArgument("the reduction is unknown");
}

bool Reduction::prepare(at::Tensor& values) const {
  if (!factor_) return false;
  const auto* const by = dynamic_cast<const PremultiplyFactor*>(factor_.get());
  if (by == nullptr) throw BadArgument("the factor of a PREMUL_SUM is unknown");
  values = by->tensor_factor.defined() ? values.mul(by->tensor_factor.to(values.options()))
                                       : values.mul(by->double_factor);
  return true;
}

void Reduction::add(const at::Tensor& values, const at::Tensor& more) const {
  at::Tensor to = values, from = more;
  if (values.scalar_type() == at::kComplexHalf) {
    to = at::view_as_real(values);
    from = at::view_as_real(more);
  }
  switch (op_) {
    case UNISONO_SUM:
      to.add_(from);
      return;
    case UNISONO_PROD:
      to.mul_(from);
      return;
    case UNISONO_MIN:
      at::minimum_out(to, to, from);
      return;
    case UNISONO_MAX:
      at::maximum_out(to, to, from);
      return;
    case UNISONO_LOGICAL_AND:
      to.logical_and_(from);
      return;
    case UNISONO_LOGICAL_OR:
      to.logical_or_(from);
      return;
    case UNISONO_BITWISE_AND:
      to.bitwise_and_(from);
      return;
    case UNISONO_BITWISE_OR:
      to.bitwise_or_(from);
      return;
    case UNISONO_BITWISE_XOR:
      to.bitwise_xor_(from);
      return;
    default:
      throw BadArgument("the reduction does not take several tensors of a rank");
  }
}

namespace {

// torch does not divide integers of these types. The values are contiguous.
template <class Integer>
void divide(const at::Tensor& values, int ranks) {
  auto* const begin = static_cast<Integer*>(values.data_ptr());
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    begin[i] = static_cast<Integer>(begin[i] / static_cast<Integer>(ranks));
  }
}

}  // namespace

void Reduction::finish(const at::Tensor& values, int ranks) const {
  if (!is_average_) return;
  const at::ScalarType type = values.scalar_type();
  if (type == at::kUInt16) {
    divide<std::uint16_t>(values, ranks);
  } else if (type == at::kUInt32) {
    divide<std::uint32_t>(values, ranks);
  } else if (type == at::kUInt64) {
    divide<std::uint64_t>(values, ranks);
  } else if (type == at::kComplexHalf) {
    at::view_as_real(values).div_(ranks);
  } else if (at::isIntegralType(type, false)) {
    values.div_(ranks, "trunc");
  } else {
    values.div_(ranks);
  }
}

}  // namespace unisono::pytorch
