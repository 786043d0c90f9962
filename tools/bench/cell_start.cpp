// SPDX-License-Identifier: BSD-3-Clause
// Cell::start: the collectives of cell.cpp in split phase.
#include "bench/cell.hpp"

namespace unisono::tools::bench {

using schedule::Collective;

int Cell::start(std::int64_t turn, unisono_request_t* request) const {
  const Buffers& pair = buffers_[static_cast<std::uint64_t>(turn) & mask_];
  return shape_.subject.unequal ? start_unequal(pair, request) : start_equal(pair, request);
}

int Cell::start_equal(const Buffers& pair, unisono_request_t* request) const {
  switch (shape_.subject.collective) {
    case Collective::barrier:
      return unisono_barrier_start(comm_, request);
    case Collective::broadcast:
      return unisono_broadcast_start(pair.output.get(), shape_.count, type_, shape_.root, comm_,
                                     request);
    case Collective::reduce:
      return unisono_reduce_start(pair.input.get(), pair.output.get(), shape_.count, type_, op_,
                                  shape_.root, comm_, request);
    case Collective::allreduce:
      return unisono_allreduce_start(pair.input.get(), pair.output.get(), shape_.count, type_, op_,
                                     comm_, request);
    case Collective::allgather:
      return unisono_allgather_start(pair.input.get(), pair.output.get(), shape_.count, type_,
                                     comm_, request);
    case Collective::gather:
      return unisono_gather_start(pair.input.get(), pair.output.get(), shape_.count, type_,
                                  shape_.root, comm_, request);
    case Collective::scatter:
      return unisono_scatter_start(pair.input.get(), pair.output.get(), shape_.count, type_,
                                   shape_.root, comm_, request);
    case Collective::alltoall:
      return unisono_alltoall_start(pair.input.get(), pair.output.get(), shape_.count, type_, comm_,
                                    request);
    case Collective::reduce_scatter:
      return unisono_reduce_scatter_block_start(pair.input.get(), pair.output.get(), shape_.count,
                                                type_, op_, comm_, request);
    case Collective::scan:
      return unisono_scan_start(pair.input.get(), pair.output.get(), shape_.count, type_, op_,
                                comm_, request);
    case Collective::exscan:
      return unisono_exscan_start(pair.input.get(), pair.output.get(), shape_.count, type_, op_,
                                  comm_, request);
    case Collective::many_to_many:
      break;  // not measured
  }
  return UNISONO_ERROR_ARGUMENT;
}

int Cell::start_unequal(const Buffers& pair, unisono_request_t* request) const {
  const void* const input = pair.input.get();
  void* const output = pair.output.get();
  const std::int64_t* const sent = input_.counts.data();
  const std::int64_t* const received = output_.counts.data();
  const std::int64_t* const from = input_.places.data();
  const std::int64_t* const to = output_.places.data();
  switch (shape_.subject.collective) {
    case Collective::allgather:
      return unisono_allgatherv_start(input, *sent, output, received, to, type_, comm_, request);
    case Collective::gather:
      return unisono_gatherv_start(input, *sent, output, received, to, type_, shape_.root, comm_,
                                   request);
    case Collective::scatter:
      return unisono_scatterv_start(input, sent, from, output, *received, type_, shape_.root, comm_,
                                    request);
    case Collective::alltoall:
      return unisono_alltoallv_start(input, sent, from, output, received, to, type_, comm_,
                                     request);
    case Collective::reduce_scatter:
      return unisono_reduce_scatter_start(input, output, sent, type_, op_, comm_, request);
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
