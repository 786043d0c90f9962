// SPDX-License-Identifier: BSD-3-Clause
#include "collectives.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "errors.hpp"
#include "tensors.hpp"

namespace unisono::pytorch {
namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

void require_numel(const Tensor& tensor, std::int64_t numel, const char* name) {
  if (tensor.numel() == numel) return;
  throw BadArgument(std::string(name) + " has " + text(tensor.numel()) + " elements, not " +
                    text(numel));
}

void require_one_for_each(const Peers& peers, const Tensors& tensors, const char* name) {
  if (tensors.size() == static_cast<std::size_t>(peers.size)) return;
  throw BadArgument(std::string(name) + " has " + text(std::ssize(tensors)) + " tensors for " +
                    text(peers.size) + " ranks");
}

// For an operation of other ranks in which this one takes no memory.
int finish(int code, const Flat& result) {
  if (code == UNISONO_OK) result.write_back();
  return code;
}

// Tensors of as many elements.
void copy_to_all(const Tensor& values, const Tensors& tensors) {
  for (const Tensor& tensor : tensors) {
    if (!tensor.is_same(values)) tensor.copy_(values.reshape(tensor.sizes()));
  }
}

Counts numels(const Tensors& tensors) {
  Counts all;
  for (const Tensor& tensor : tensors) all.push_back(tensor.numel());
  return all;
}

Counts scaled(Counts counts, std::int64_t factor) {
  for (std::int64_t& count : counts) count *= factor;
  return counts;
}

}  // namespace

int broadcast(const Peers& peers, const Tensor& tensor, int root) {
  const Flat values = peers.rank == root ? Flat::input(tensor) : Flat::output(tensor);
  const int code =
      unisono_broadcast(values.data(), values.count(), values.element().type, root, peers.comm);
  return peers.rank == root ? code : finish(code, values);
}

int broadcast(const Peers& peers, const Tensors& tensors, int root, int root_tensor) {
  first_of(tensors);
  if (root_tensor < 0 || root_tensor >= std::ssize(tensors)) {
    throw BadArgument("tensor " + text(root_tensor) + " of the root is not one of the " +
                      text(std::ssize(tensors)) + " tensors");
  }
  const Tensor& sent = tensors[static_cast<std::size_t>(root_tensor)];
  require_equal(tensors, sent, "this rank");
  for (const Tensor& tensor : tensors) Flat::output(tensor);  // all can take a result
  const int code = broadcast(peers, sent, root);
  if (code == UNISONO_OK) copy_to_all(sent, tensors);
  return code;
}

int all_reduce(const Peers& peers, const Tensor& tensor, const c10d::ReduceOp& op) {
  Flat values = Flat::in_place(tensor);
  const Reduction reduction(op, tensor);
  if (Tensor scaled = values.tensor(); reduction.prepare(scaled)) values.replace(scaled);
  const int code = unisono_allreduce(UNISONO_IN_PLACE, values.data(), values.count(),
                                     values.element().type, reduction.op(), peers.comm);
  if (code == UNISONO_OK) reduction.finish(values.tensor(), peers.size);
  return finish(code, values);
}

int all_reduce(const Peers& peers, const Tensors& tensors, const c10d::ReduceOp& op) {
  const Tensor& first = first_of(tensors);
  require_equal(tensors, first, "this rank");
  const Reduction reduction(op, first);
  const auto summand = [&](const Tensor& tensor) {
    Tensor values = Flat::in_place(tensor).tensor();
    reduction.prepare(values);
    return values.reshape({-1});
  };
  const Tensor combined = summand(first).clone();
  for (std::size_t i = 1; i < tensors.size(); ++i) reduction.add(combined, summand(tensors[i]));
  const Element element = element_of(first);
  const int code =
      unisono_allreduce(UNISONO_IN_PLACE, combined.data_ptr(), combined.numel() * element.units,
                        element.type, reduction.op(), peers.comm);
  if (code != UNISONO_OK) return code;
  reduction.finish(combined, peers.size * static_cast<int>(tensors.size()));
  copy_to_all(combined, tensors);
  return code;
}

int all_reduce_each(const Peers& peers, const Tensors& tensors, const c10d::ReduceOp& op) {
  first_of(tensors);
  const bool are_apart = !share_memory(tensors);
  int code = UNISONO_OK;
  Tensors reduced;
  for (std::size_t i = 0; i < tensors.size() && code == UNISONO_OK; ++i) {
    reduced.push_back(are_apart ? tensors[i] : tensors[i].clone());
    code = all_reduce(peers, reduced.back(), op);
  }
  if (code != UNISONO_OK || are_apart) return code;
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].copy_(reduced[i]);
  return code;
}

namespace {

// All that ranks have to agree on, and how many elements each has.
struct SparseShape {
  static constexpr std::int64_t kMostDimensions = 24;
  std::int64_t elements = 0, sparse_dimensions = 0, dimensions = 0, type = 0;
  std::int64_t sizes[kMostDimensions] = {};

  friend bool differ(const SparseShape& a, const SparseShape& b) {
    return a.sparse_dimensions != b.sparse_dimensions || a.dimensions != b.dimensions ||
           a.type != b.type || !std::ranges::equal(a.sizes, b.sizes);
  }
};

SparseShape shape_of(const Tensor& sparse) {
  SparseShape shape{sparse._nnz(), sparse.sparse_dim(), sparse.dim(),
                    static_cast<std::int64_t>(sparse.scalar_type())};
  if (sparse.dim() > SparseShape::kMostDimensions) {
    throw BadArgument("a sparse tensor has " + text(sparse.dim()) + " dimensions; at most " +
                      text(SparseShape::kMostDimensions) + " are possible");
  }
  std::ranges::copy(sparse.sizes(), shape.sizes);
  return shape;
}

// The rows of all ranks, one rank's behind another's.
int gather_rows(const Peers& peers, const std::vector<SparseShape>& shapes, const Tensor& rows,
                Tensor& all) {
  std::vector<std::int64_t> sizes = rows.sizes().vec();
  sizes.front() = 0;
  for (const SparseShape& shape : shapes) sizes.front() += shape.elements;
  all = at::empty(sizes, rows.options());
  Tensors of_ranks;
  std::int64_t begin = 0;
  for (const SparseShape& shape : shapes) {
    of_ranks.push_back(all.narrow(0, begin, shape.elements));
    begin += shape.elements;
  }
  return all_gather(peers, of_ranks, rows);
}

}  // namespace

int all_reduce_sparse(const Peers& peers, const Tensors& tensors, const c10d::ReduceOp& op) {
  const Tensor& first = first_of(tensors);
  if (op.op_ != c10d::ReduceOp::SUM) throw BadArgument("only SUM takes sparse tensors");
  Tensor own;
  for (const Tensor& tensor : tensors) {
    if (tensor.layout() != at::kSparse || !tensor.device().is_cpu()) {
      throw BadArgument("a tensor is not sparse in coordinate format, in host memory");
    }
    if (differ(shape_of(tensor), shape_of(first))) {
      throw BadArgument("the sparse tensors of this rank have different shapes or types");
    }
    own = own.defined() ? own.add(tensor.coalesce()).coalesce() : tensor.coalesce();
  }
  const SparseShape shape = shape_of(own);
  std::vector<SparseShape> shapes(static_cast<std::size_t>(peers.size));
  int code = unisono_allgather(&shape, shapes.data(), sizeof shape / 8, UNISONO_INT64, peers.comm);
  if (code != UNISONO_OK) return code;
  for (const SparseShape& other : shapes) {
    if (!differ(shape, other)) continue;
    throw BadArgument("rank " + text(&other - shapes.data()) +
                      " has a sparse tensor of another shape or type");
  }
  Tensor indices, values;
  code = gather_rows(peers, shapes, own.indices().t().contiguous(), indices);
  if (code == UNISONO_OK) code = gather_rows(peers, shapes, own.values(), values);
  if (code != UNISONO_OK) return code;
  const Tensor total = at::sparse_coo_tensor(indices.t(), values, own.sizes()).coalesce();
  for (const Tensor& tensor : tensors) tensor.copy_(total);
  return code;
}

int average_as_bfloat16(const Peers& peers, const Tensor& tensor) {
  const Flat values = Flat::in_place(tensor);
  if (!at::isFloatingType(tensor.scalar_type())) {
    throw BadArgument("gradients are not real numbers", BadArgument::Kind::type);
  }
  const std::int64_t part = (values.numel() + peers.size - 1) / peers.size;
  const auto options = at::TensorOptions().dtype(at::kBFloat16);
  const Tensor give = at::zeros({part * peers.size}, options);
  give.narrow(0, 0, values.numel()).copy_(values.tensor().reshape({-1}));
  const Tensor take = at::empty_like(give);
  int code = unisono_alltoall(give.data_ptr(), take.data_ptr(), part, UNISONO_BFLOAT16, peers.comm);
  if (code != UNISONO_OK) return code;
  const std::int64_t of_ranks = 0;  // the dimension
  Tensor sum = take.view({peers.size, part}).sum(at::IntArrayRef(of_ranks), false, at::kFloat);
  const Tensor own = sum.div_(peers.size).to(at::kBFloat16);
  code = unisono_allgather(own.data_ptr(), give.data_ptr(), part, UNISONO_BFLOAT16, peers.comm);
  if (code != UNISONO_OK) return code;
  tensor.copy_(give.narrow(0, 0, values.numel()).view(tensor.sizes()));
  return code;
}

int reduce(const Peers& peers, const Tensor& tensor, const c10d::ReduceOp& op, int root) {
  const Reduction reduction(op, tensor);
  Flat values = peers.rank == root ? Flat::in_place(tensor) : Flat::input(tensor);
  Tensor input = values.tensor();
  const bool is_new = reduction.prepare(input);
  if (peers.rank != root) {
    return unisono_reduce(input.data_ptr(), nullptr, values.count(), values.element().type,
                          reduction.op(), root, peers.comm);
  }
  if (is_new) values.replace(input);
  const int code = unisono_reduce(UNISONO_IN_PLACE, values.data(), values.count(),
                                  values.element().type, reduction.op(), root, peers.comm);
  if (code == UNISONO_OK) reduction.finish(values.tensor(), peers.size);
  return finish(code, values);
}

int all_gather(const Peers& peers, const Tensor& output, const Tensor& input) {
  require_type(input, output);
  require_numel(output, input.numel() * peers.size, "the output");
  const Flat from = Flat::input(input), to = Flat::output(output);
  const char* const own = static_cast<const char*>(to.data()) + peers.rank * from.bytes();
  const bool is_own = from.data() == own && from.numel() > 0;
  return finish(unisono_allgather(is_own ? UNISONO_IN_PLACE : from.data(), to.data(), from.count(),
                                  from.element().type, peers.comm),
                to);
}

int all_gather(const Peers& peers, const Tensors& outputs, const Tensor& input) {
  require_one_for_each(peers, outputs, "the output");
  const Tensor all = room_for(outputs);
  require_type(input, all);
  require_numel(outputs[static_cast<std::size_t>(peers.rank)], input.numel(),
                "the output of this rank");
  const bool are_equal = std::ranges::all_of(
      outputs, [&](const Tensor& output) { return output.numel() == input.numel(); });
  int code = UNISONO_OK;
  if (are_equal) {
    code = all_gather(peers, all, input);
  } else {
    const Flat from = Flat::input(input);
    const Counts counts = scaled(numels(outputs), from.element().units);
    code = unisono_allgatherv(from.data(), from.count(), all.data_ptr(), counts.data(), nullptr,
                              from.element().type, peers.comm);
  }
  if (code == UNISONO_OK) take_apart(all, outputs);
  return code;
}

int all_gather(const Peers& peers, const std::vector<Tensors>& outputs, const Tensors& inputs) {
  const Tensor& first = first_of(inputs);
  if (outputs.size() != inputs.size()) {
    throw BadArgument("there are " + text(std::ssize(outputs)) + " lists of outputs for " +
                      text(std::ssize(inputs)) + " inputs");
  }
  require_equal(inputs, first, "the input");
  const std::int64_t of_all = std::ssize(inputs) * peers.size;
  for (const Tensors& list : outputs) {
    require_equal(list, first, "the output");
    if (std::ssize(list) == of_all) continue;
    throw BadArgument("a list of outputs has " + text(std::ssize(list)) + " tensors, not " +
                      text(of_all));
  }
  const Tensor own = joined(inputs), all = room_for(outputs.front());
  const int code = all_gather(peers, all, own);
  if (code != UNISONO_OK) return code;
  for (const Tensors& list : outputs) take_apart(all, list);
  return code;
}

namespace {

// Stops at the first error. Each input has an output.
template <class Each>
int for_each_of(const Tensors& outputs, const Tensors& inputs, const Each& each) {
  first_of(inputs);
  if (outputs.size() != inputs.size()) {
    throw BadArgument("there are " + text(std::ssize(outputs)) + " outputs for " +
                      text(std::ssize(inputs)) + " inputs");
  }
  int code = UNISONO_OK;
  for (std::size_t i = 0; i < inputs.size() && code == UNISONO_OK; ++i) {
    code = each(outputs[i], inputs[i]);
  }
  return code;
}

}  // namespace

int all_gather_each(const Peers& peers, const std::vector<Tensors>& outputs,
                    const Tensors& inputs) {
  first_of(inputs);
  for (const Tensors& of_rank : outputs) {
    if (of_rank.size() == inputs.size()) continue;
    throw BadArgument("there are " + text(std::ssize(of_rank)) + " outputs of a rank for " +
                      text(std::ssize(inputs)) + " inputs");
  }
  int code = UNISONO_OK;
  for (std::size_t i = 0; i < inputs.size() && code == UNISONO_OK; ++i) {
    Tensors of_ranks;
    for (const Tensors& of_rank : outputs) of_ranks.push_back(of_rank[i]);
    code = all_gather(peers, of_ranks, inputs[i]);
  }
  return code;
}

int all_gather_each(const Peers& peers, const Tensors& outputs, const Tensors& inputs) {
  return for_each_of(outputs, inputs, [&](const Tensor& output, const Tensor& input) {
    return all_gather(peers, output, input);
  });
}

int gather(const Peers& peers, const Tensor& output, const Tensor& input, int root) {
  const Flat from = Flat::input(input);
  if (peers.rank != root) {
    return unisono_gather(from.data(), nullptr, from.count(), from.element().type, root,
                          peers.comm);
  }
  require_type(input, output);
  require_numel(output, input.numel() * peers.size, "the output");
  const Flat to = Flat::output(output);
  return finish(
      unisono_gather(from.data(), to.data(), from.count(), from.element().type, root, peers.comm),
      to);
}

int gather(const Peers& peers, const Tensors& outputs, const Tensor& input, int root) {
  if (peers.rank != root) return gather(peers, Tensor(), input, root);
  require_one_for_each(peers, outputs, "the output");
  require_equal(outputs, input, "the output");
  const Tensor all = room_for(outputs);
  const int code = gather(peers, all, input, root);
  if (code == UNISONO_OK) take_apart(all, outputs);
  return code;
}

int scatter(const Peers& peers, const Tensor& output, const Tensors& inputs, int root) {
  const Flat to = Flat::output(output);
  Tensor all;
  if (peers.rank == root) {
    require_one_for_each(peers, inputs, "the input");
    require_equal(inputs, output, "the input");
    all = joined(inputs);
  }
  return finish(unisono_scatter(all.defined() ? all.data_ptr() : nullptr, to.data(), to.count(),
                                to.element().type, root, peers.comm),
                to);
}

int reduce_scatter(const Peers& peers, const Tensor& output, const Tensor& input,
                   const c10d::ReduceOp& op) {
  require_type(input, output);
  require_numel(input, output.numel() * peers.size, "the input");
  const Reduction reduction(op, input);
  const Flat from = Flat::input(input), to = Flat::output(output);
  Tensor values = from.tensor();
  bool is_new = reduction.prepare(values);
  // The output may be this rank's part of the input.
  const auto* const begin = static_cast<const char*>(values.data_ptr());
  const auto* const place = static_cast<const char*>(to.data());
  if (!is_new && place < begin + from.bytes() && begin < place + to.bytes()) {
    values = values.clone();
  }
  const int code = unisono_reduce_scatter_block(values.data_ptr(), to.data(), to.count(),
                                                to.element().type, reduction.op(), peers.comm);
  if (code == UNISONO_OK) reduction.finish(to.tensor(), peers.size);
  return finish(code, to);
}

int reduce_scatter(const Peers& peers, const Tensor& output, const Tensors& inputs,
                   const c10d::ReduceOp& op) {
  require_one_for_each(peers, inputs, "the input");
  const Counts counts = numels(inputs);
  require_numel(output, counts[static_cast<std::size_t>(peers.rank)], "the output");
  require_type(output, inputs.front());
  const Reduction reduction(op, output);
  const Flat to = Flat::output(output);
  Tensor values = joined(inputs);
  reduction.prepare(values);
  const Counts units = scaled(counts, to.element().units);
  const int code = unisono_reduce_scatter(values.data_ptr(), to.data(), units.data(),
                                          to.element().type, reduction.op(), peers.comm);
  if (code == UNISONO_OK) reduction.finish(to.tensor(), peers.size);
  return finish(code, to);
}

int reduce_scatter_each(const Peers& peers, const Tensors& outputs, const Tensors& inputs,
                        const c10d::ReduceOp& op) {
  return for_each_of(outputs, inputs, [&](const Tensor& output, const Tensor& input) {
    return reduce_scatter(peers, output, input, op);
  });
}

namespace {

// The elements for each rank of a tensor that is divided along its first dimension.
Counts elements_of_rows(const Peers& peers, const Tensor& tensor, const Counts& rows,
                        const char* name) {
  const std::int64_t length = tensor.dim() == 0 ? 1 : tensor.size(0);
  if (rows.empty()) {
    if (length % peers.size != 0) {
      throw BadArgument(std::string(name) + " has " + text(length) +
                        " rows, which is no multiple of the " + text(peers.size) + " ranks");
    }
    return Counts(static_cast<std::size_t>(peers.size), tensor.numel() / peers.size);
  }
  const bool is_negative = std::ranges::any_of(rows, [](std::int64_t r) { return r < 0; });
  const bool fits = std::ssize(rows) == peers.size && !is_negative &&
                    std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) == length;
  if (!fits) {
    throw BadArgument("the split sizes of " + std::string(name) + " are not " + text(peers.size) +
                      " numbers that add up to its " + text(length) + " rows");
  }
  return scaled(rows, length == 0 ? 0 : tensor.numel() / length);
}

bool overlap(const Flat& a, const Flat& b) {
  const auto* const first = static_cast<const char*>(a.data());
  const auto* const second = static_cast<const char*>(b.data());
  return first < second + b.bytes() && second < first + a.bytes();
}

int exchange(const Peers& peers, const Flat& to, const Flat& from, const Counts& output_counts,
             const Counts& input_counts) {
  const std::int64_t units = from.element().units;
  const Counts give = scaled(input_counts, units), take = scaled(output_counts, units);
  const bool is_same = from.data() == to.data() && from.numel() > 0;
  return unisono_alltoallv(is_same ? UNISONO_IN_PLACE : from.data(), give.data(), nullptr,
                           to.data(), take.data(), nullptr, from.element().type, peers.comm);
}

}  // namespace

// Ranks whose rows are divided evenly may pass no counts where others pass some. So all of them
// make the same collective, which takes counts.
int all_to_all(const Peers& peers, const Tensor& output, const Tensor& input,
               const Counts& output_rows, const Counts& input_rows) {
  require_type(input, output);
  const Counts give = elements_of_rows(peers, input, input_rows, "the input");
  const Counts take = elements_of_rows(peers, output, output_rows, "the output");
  if (output_rows.empty() && input_rows.empty()) {
    require_numel(output, input.numel(), "the output");
  }
  const Flat to = Flat::output(output);
  Flat from = Flat::input(input);
  const bool is_in_place = from.data() == to.data() && give == take;
  if (!is_in_place && overlap(from, to)) from = Flat::input(from.tensor().clone());
  return finish(exchange(peers, to, from, take, give), to);
}

int all_to_all(const Peers& peers, const Tensors& outputs, const Tensors& inputs) {
  require_one_for_each(peers, inputs, "the input");
  require_one_for_each(peers, outputs, "the output");
  require_type(inputs.front(), outputs.front());
  const Tensor from = joined(inputs), to = room_for(outputs);
  const int code =
      exchange(peers, Flat::output(to), Flat::input(from), numels(outputs), numels(inputs));
  if (code == UNISONO_OK) take_apart(to, outputs);
  return code;
}

}  // namespace unisono::pytorch
