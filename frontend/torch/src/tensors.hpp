// SPDX-License-Identifier: BSD-3-Clause
// Tensors as the library takes them: contiguous host memory of a type. Tensors of a device are
// staged: copied to host memory (pinned, for a GPU) and back, on the current stream of the thread.
// All throw BadArgument for tensors without values or that are not dense. Any thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <unisono/unisono.h>

#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

namespace unisono::pytorch {

// The elements of a tensor as a collective sees them. Elements of other types are moved as bytes.
struct Element {
  unisono_type_t type = UNISONO_BYTE;
  std::int64_t units = 1;  // of `type` in each element
  bool can_be_reduced = false;
};
Element element_of(const at::Tensor& tensor);

// The values of a tensor in one piece: the tensor itself if it is contiguous and in host memory,
// otherwise a copy.
class Flat {
 public:
  static Flat input(const at::Tensor& tensor);
  // The values are not copied.
  static Flat output(const at::Tensor& tensor);
  static Flat in_place(const at::Tensor& tensor);

  void* data() const { return flat_.data_ptr(); }
  std::int64_t numel() const { return flat_.numel(); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(flat_.nbytes()); }
  std::int64_t count() const { return flat_.numel() * element_.units; }
  const Element& element() const { return element_; }
  const at::Tensor& tensor() const { return flat_; }
  // Replaces the values by those of a contiguous tensor, before the collective.
  void replace(const at::Tensor& values);
  // After the collective: copies the values back to where they belong.
  void write_back() const;

 private:
  Flat(const at::Tensor& target, at::Tensor flat);

  at::Tensor target_, flat_;
  Element element_;
};

// The tensor of a list that has one, as torch.distributed passes it. Callers of a ProcessGroup may
// pass others.
const at::Tensor& only(const std::vector<at::Tensor>& tensors);
// The first tensor of a list that has one or more.
const at::Tensor& first_of(const std::vector<at::Tensor>& tensors);
// One tensor in host memory of the elements of several, one behind the other; and the way back.
at::Tensor joined(const std::vector<at::Tensor>& tensors);
at::Tensor room_for(const std::vector<at::Tensor>& tensors);
void take_apart(const at::Tensor& joined, const std::vector<at::Tensor>& tensors);
// Whether two of them may have an element in common.
bool share_memory(const std::vector<at::Tensor>& tensors);
// All have as many elements as the first, of the type of `like`.
void require_equal(const std::vector<at::Tensor>& tensors, const at::Tensor& like,
                   const char* name);
void require_type(const at::Tensor& tensor, const at::Tensor& like);

// A reduction of c10d: the library's operator, and what is done before and after it.
class Reduction {
 public:
  Reduction(const c10d::ReduceOp& op, const at::Tensor& tensor);
  unisono_op_t op() const { return op_; }
  // Combines `values` with those of another tensor of this rank, by the operator.
  void add(const at::Tensor& values, const at::Tensor& more) const;
  // Multiplies by the factor of a PREMUL_SUM. True if `values` are new.
  bool prepare(at::Tensor& values) const;
  // Divides by the number of ranks for an average.
  void finish(const at::Tensor& values, int ranks) const;

 private:
  unisono_op_t op_ = UNISONO_SUM;
  bool is_average_ = false;
  c10::intrusive_ptr<c10d::_SupplementBase> factor_;
};

}  // namespace unisono::pytorch
