// SPDX-License-Identifier: BSD-3-Clause
#include "calls/reductions.hpp"

#include <algorithm>

#include "host/host.hpp"
#include "library.hpp"

namespace unisono::mpi {
namespace {

// Input and output are the same elements. Most MPIs take the same buffer twice for MPI_IN_PLACE.
bool are_in_place(const void* send, const void* receive) {
  return is_in_place(send) || send == receive;
}

}  // namespace

std::int64_t bytes_to_reduce(LargeCount count, Handle type, Handle op) {
  const auto reduction = find_reduction(type, op);
  return count < 0 || !reduction ? Call::kUnknown : count * reduction->size;
}

int BarrierCall::call(const Communicator& own, unisono_request_t* request) {
  return invoke(request, library().barrier, library().barrier_start, own.unisono.get());
}

bool ReductionCall::set_buffers(const void* send, void* receive, bool in_place, std::int64_t input,
                                std::int64_t output) {
  if ((send == nullptr && input > 0) || (receive == nullptr && output > 0)) return false;
  const std::int64_t size = reducer_->size();
  buffers_.emplace(send, receive, in_place, input * size, output * size, *reducer_);
  return true;
}

std::optional<LastCall::Kept> ReductionCall::kept() const {
  if (count_ == 0 || reducer_->is_by_host() || !buffers_->are_plain()) return std::nullopt;
  return LastCall::Kept{{buffers_->input_bytes(), buffers_->output_bytes(), reducer_->alignment()},
                        {.count = count_, .type = reducer_->type(), .op = reducer_->op()}};
}

bool ReduceAllCall::take(const Communicator&, const void* send, void* receive, LargeCount count,
                         Handle type, Handle op, Handle comm) {
  if (count < 0 || is_in_place(receive) || !set_reducer(type, op, comm)) return false;
  count_ = count;
  return set_buffers(send, receive, are_in_place(send, receive), count, count);
}

int AllreduceCall::call(const Communicator& own, unisono_request_t* request) {
  return call_with(library().allreduce, library().allreduce_start, own, request);
}

int ScanCall::call(const Communicator& own, unisono_request_t* request) {
  return call_with(library().scan, library().scan_start, own, request);
}

bool ExscanCall::take(const Communicator& own, const void* send, void* receive, LargeCount count,
                      Handle type, Handle op, Handle comm) {
  const bool is_ignored = own.rank == 0 && !are_in_place(send, receive);
  if (is_ignored && receive == nullptr && count > 0) {
    receive = nowhere_.allocate(count * std::max<std::int64_t>(0, type_info(type).extent));
  }
  if (!ReduceAllCall::take(own, send, receive, count, type, op, comm)) return false;
  if (is_ignored) buffers_->leave_output();
  return true;
}

int ExscanCall::call(const Communicator& own, unisono_request_t* request) {
  return call_with(library().exscan, library().exscan_start, own, request);
}

bool ReduceCall::take(const Communicator& own, const void* send, void* receive, LargeCount count,
                      Handle type, Handle op, int root, Handle comm) {
  // The output is significant at the root only.
  const bool is_root = own.rank == root;
  const bool is_valid = count >= 0 && root >= 0 && root < own.size;
  if (!is_valid || is_in_place(is_root ? receive : send)) return false;
  if (!set_reducer(type, op, comm)) return false;
  root_ = root;
  count_ = count;
  return set_buffers(send, is_root ? receive : nullptr, is_root && are_in_place(send, receive),
                     count, is_root ? count : 0);
}

int ReduceCall::call(const Communicator& own, unisono_request_t* request) {
  return invoke(request, library().reduce, library().reduce_start, buffers_->input(),
                buffers_->output(), count_, reducer_->type(), reducer_->op(), root_,
                own.unisono.get());
}

bool Reduce_scatter_blockCall::take(const Communicator& own, const void* send, void* receive,
                                    LargeCount count, Handle type, Handle op, Handle comm) {
  if (count < 0 || is_in_place(receive) || !set_reducer(type, op, comm)) return false;
  count_ = count;
  return set_buffers(send, receive, are_in_place(send, receive), std::int64_t{own.size} * count,
                     count);
}

int Reduce_scatter_blockCall::call(const Communicator& own, unisono_request_t* request) {
  return invoke(request, library().reduce_scatter_block, library().reduce_scatter_block_start,
                buffers_->input(), buffers_->output(), count_, reducer_->type(), reducer_->op(),
                own.unisono.get());
}

bool Reduce_scatterCall::take(const Communicator& own, const void* send, void* receive,
                              Integers counts, Handle type, Handle op, Handle comm) {
  if (!counts || !counts.are_counts(own.size) || is_in_place(receive)) return false;
  if (!set_reducer(type, op, comm)) return false;
  counts_.resize(own.size);
  std::int64_t all = 0;
  for (int i = 0; i < own.size; ++i) all += counts_[i] = counts[i];
  return set_buffers(send, receive, are_in_place(send, receive), all, counts[own.rank]);
}

std::int64_t Reduce_scatterCall::block_bytes(const Ranks& own, const void*, void*, Integers counts,
                                             Handle type, Handle op, Handle) {
  if (!counts || !counts.are_counts(own.size)) return kUnknown;
  std::int64_t all = 0;
  for (int i = 0; i < own.size; ++i) all += counts[i];
  const std::int64_t bytes = bytes_to_reduce(all, type, op);
  return bytes < 0 ? kUnknown : bytes / own.size;
}

int Reduce_scatterCall::call(const Communicator& own, unisono_request_t* request) {
  return invoke(request, library().reduce_scatter, library().reduce_scatter_start,
                buffers_->input(), buffers_->output(), counts_.data(), reducer_->type(),
                reducer_->op(), own.unisono.get());
}

}  // namespace unisono::mpi
