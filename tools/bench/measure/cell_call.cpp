// SPDX-License-Identifier: BSD-3-Clause
// Cell::call and Cell::start: each collective of the C API with a cell's arguments, as a whole and
// in split phase.
#include "bench/measure/cell.hpp"

namespace unisono::tools::bench {
namespace {

using schedule::Collective;

// The collective as a whole, or, if there is a request, its start.
template <typename Whole, typename Start, typename... Arguments>
int either(unisono_request_t* request, Whole whole, Start start, Arguments... arguments) {
  return request == nullptr ? whole(arguments...) : start(arguments..., request);
}

}  // namespace

int Cell::call(std::int64_t turn) const { return call_or_start(turn, nullptr); }

int Cell::start(std::int64_t turn, unisono_request_t* request) const {
  return call_or_start(turn, request);
}

int Cell::call_or_start(std::int64_t turn, unisono_request_t* request) const {
  const Buffers& pair = buffers_[static_cast<std::uint64_t>(turn) & mask_];
  const void* const input = pair.input.get();
  void* const output = pair.output.get();
  return shape_.subject.unequal ? unequal(input, output, request) : equal(input, output, request);
}

int Cell::equal(const void* input, void* output, unisono_request_t* request) const {
  const std::int64_t count = shape_.count;
  const int root = shape_.root;
  switch (shape_.subject.collective) {
    case Collective::barrier:
      return either(request, unisono_barrier, unisono_barrier_start, comm_);
    case Collective::broadcast:
      return either(request, unisono_broadcast, unisono_broadcast_start, output, count, type_, root,
                    comm_);
    case Collective::reduce:
      return either(request, unisono_reduce, unisono_reduce_start, input, output, count, type_, op_,
                    root, comm_);
    case Collective::allreduce:
      return either(request, unisono_allreduce, unisono_allreduce_start, input, output, count,
                    type_, op_, comm_);
    case Collective::allgather:
      return either(request, unisono_allgather, unisono_allgather_start, input, output, count,
                    type_, comm_);
    case Collective::gather:
      return either(request, unisono_gather, unisono_gather_start, input, output, count, type_,
                    root, comm_);
    case Collective::scatter:
      return either(request, unisono_scatter, unisono_scatter_start, input, output, count, type_,
                    root, comm_);
    case Collective::alltoall:
      return either(request, unisono_alltoall, unisono_alltoall_start, input, output, count, type_,
                    comm_);
    case Collective::reduce_scatter:
      return either(request, unisono_reduce_scatter_block, unisono_reduce_scatter_block_start,
                    input, output, count, type_, op_, comm_);
    case Collective::scan:
      return either(request, unisono_scan, unisono_scan_start, input, output, count, type_, op_,
                    comm_);
    case Collective::exscan:
      return either(request, unisono_exscan, unisono_exscan_start, input, output, count, type_, op_,
                    comm_);
    case Collective::many_to_many:
      break;  // not measured
  }
  return UNISONO_ERROR_ARGUMENT;
}

int Cell::unequal(const void* input, void* output, unisono_request_t* request) const {
  const std::int64_t* const sent = input_.counts.data();
  const std::int64_t* const received = output_.counts.data();
  const std::int64_t* const from = input_.places.data();
  const std::int64_t* const to = output_.places.data();
  switch (shape_.subject.collective) {
    case Collective::allgather:
      return either(request, unisono_allgatherv, unisono_allgatherv_start, input, *sent, output,
                    received, to, type_, comm_);
    case Collective::gather:
      return either(request, unisono_gatherv, unisono_gatherv_start, input, *sent, output, received,
                    to, type_, shape_.root, comm_);
    case Collective::scatter:
      return either(request, unisono_scatterv, unisono_scatterv_start, input, sent, from, output,
                    *received, type_, shape_.root, comm_);
    case Collective::alltoall:
      return either(request, unisono_alltoallv, unisono_alltoallv_start, input, sent, from, output,
                    received, to, type_, comm_);
    case Collective::reduce_scatter:
      return either(request, unisono_reduce_scatter, unisono_reduce_scatter_start, input, output,
                    sent, type_, op_, comm_);
    case Collective::barrier:
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::allreduce:
    case Collective::scan:
    case Collective::exscan:
    case Collective::many_to_many:
      break;  // has no blocks, or is not measured
  }
  return UNISONO_ERROR_ARGUMENT;
}

}  // namespace unisono::tools::bench
