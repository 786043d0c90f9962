// SPDX-License-Identifier: BSD-3-Clause
// The collectives on tensors, blocking: each checks its tensors, calls the library, and puts the
// result where it belongs. They return the library's code and throw BadArgument. `peers` says which
// rank this is and of how many. One thread at a time, as the communicator.
#pragma once

#include <ATen/core/Tensor.h>
#include <unisono/unisono.h>

#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

namespace unisono::pytorch {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Counts = std::vector<std::int64_t>;

struct Peers {
  unisono_comm_t comm;
  int rank, size;
};

int broadcast(const Peers& peers, const Tensor& tensor, int root);
// One of the root's tensors goes to all tensors of all ranks.
int broadcast(const Peers& peers, const Tensors& tensors, int root, int root_tensor);
int all_reduce(const Peers& peers, const Tensor& tensor, const c10d::ReduceOp& op);
// All tensors of all ranks are combined, and each takes the result. An average takes it that all
// ranks have as many.
int all_reduce(const Peers& peers, const Tensors& tensors, const c10d::ReduceOp& op);
// Each tensor with those of its place on the other ranks. A tensor may be in the list twice.
int all_reduce_each(const Peers& peers, const Tensors& tensors, const c10d::ReduceOp& op);
// The sum of sparse tensors in coordinate format, as Gloo's: they may have elements at different
// places, and the result is coalesced. Each tensor of this rank takes it.
int all_reduce_sparse(const Peers& peers, const Tensors& tensors, const c10d::ReduceOp& op);
// The average of real numbers, which travel as bfloat16 and are added up as float32 in the order of
// ranks. Each rank adds up one part, rounds it once, and sends it to all.
int average_as_bfloat16(const Peers& peers, const Tensor& tensor);
int reduce(const Peers& peers, const Tensor& tensor, const c10d::ReduceOp& op, int root);
// `output` has the elements of all ranks.
int all_gather(const Peers& peers, const Tensor& output, const Tensor& input);
// The outputs may have different lengths, alike at all ranks.
int all_gather(const Peers& peers, const Tensors& outputs, const Tensor& input);
// Each rank has several tensors, and as many lists. Each list takes the tensors of all ranks.
int all_gather(const Peers& peers, const std::vector<Tensors>& outputs, const Tensors& inputs);
// Each input with those of its place on the other ranks. `outputs` has a list for each rank.
int all_gather_each(const Peers& peers, const std::vector<Tensors>& outputs, const Tensors& inputs);
// Each output has the elements of all ranks.
int all_gather_each(const Peers& peers, const Tensors& outputs, const Tensors& inputs);
// At other ranks than the root, `output` is not used, nor are `outputs`.
int gather(const Peers& peers, const Tensor& output, const Tensor& input, int root);
int gather(const Peers& peers, const Tensors& outputs, const Tensor& input, int root);
int scatter(const Peers& peers, const Tensor& output, const Tensors& inputs, int root);
int reduce_scatter(const Peers& peers, const Tensor& output, const Tensor& input,
                   const c10d::ReduceOp& op);
int reduce_scatter(const Peers& peers, const Tensor& output, const Tensors& inputs,
                   const c10d::ReduceOp& op);
// Each input with those of its place on the other ranks.
int reduce_scatter_each(const Peers& peers, const Tensors& outputs, const Tensors& inputs,
                        const c10d::ReduceOp& op);
// Rows of the first dimension for each rank; empty: equal parts.
int all_to_all(const Peers& peers, const Tensor& output, const Tensor& input,
               const Counts& output_rows, const Counts& input_rows);
int all_to_all(const Peers& peers, const Tensors& outputs, const Tensors& inputs);

}  // namespace unisono::pytorch
