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

int all_reduce(const Peers& peers, const Tensor& tensor, const c10d::ReduceOp& op) {
  Flat values = Flat::in_place(tensor);
  const Reduction reduction(op, tensor);
  if (Tensor scaled = values.tensor(); reduction.prepare(scaled)) values.replace(scaled);
  const int code = unisono_allreduce(UNISONO_IN_PLACE, values.data(), values.count(),
                                     values.element().type, reduction.op(), peers.comm);
  if (code == UNISONO_OK) reduction.finish(values.tensor(), peers.size);
  return finish(code, values);
}

int reduce(const Peers& peers, const Tensor& tensor, const c10d::ReduceOp& op, int root) {
  const Reduction reduction(op, tensor);
  Flat values = Flat::in_place(tensor);
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
  require_equal(outputs, input, "the output");
  const Tensor all = room_for(outputs);
  const int code = all_gather(peers, all, input);
  if (code == UNISONO_OK) take_apart(all, outputs);
  return code;
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
  const int code = unisono_reduce_scatter(values.data_ptr(), to.data(), counts.data(),
                                          to.element().type, reduction.op(), peers.comm);
  if (code == UNISONO_OK) reduction.finish(to.tensor(), peers.size);
  return finish(code, to);
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

int exchange(const Peers& peers, const Flat& to, const Flat& from, const Counts& output_counts,
             const Counts& input_counts) {
  const std::int64_t units = from.element().units;
  const Counts give = scaled(input_counts, units), take = scaled(output_counts, units);
  return unisono_alltoallv(from.data(), give.data(), nullptr, to.data(), take.data(), nullptr,
                           from.element().type, peers.comm);
}

}  // namespace

int all_to_all(const Peers& peers, const Tensor& output, const Tensor& input,
               const Counts& output_rows, const Counts& input_rows) {
  require_type(input, output);
  const Counts give = elements_of_rows(peers, input, input_rows, "the input");
  const Counts take = elements_of_rows(peers, output, output_rows, "the output");
  const Flat from = Flat::input(input), to = Flat::output(output);
  if (output_rows.empty() && input_rows.empty()) {
    require_numel(output, input.numel(), "the output");
    const bool is_same = from.data() == to.data() && from.numel() > 0;
    return finish(unisono_alltoall(is_same ? UNISONO_IN_PLACE : from.data(), to.data(),
                                   from.count() / peers.size, from.element().type, peers.comm),
                  to);
  }
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
