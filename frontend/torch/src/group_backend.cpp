// SPDX-License-Identifier: BSD-3-Clause
#include "group_backend.hpp"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "signals.hpp"
#include "store/session.hpp"
#include "store/store_exchange.hpp"

namespace unisono::pytorch {
namespace {

constexpr int kShrinkAborts = 1;  // torch.distributed.SHRINK_ABORT

const Tensor& message_of(const Tensors& tensors) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "unisono: a message is one tensor, not ", tensors.size());
  return tensors.front();
}

}  // namespace

GroupBackend::GroupBackend(const StorePtr& store, int rank, int size, Milliseconds timeout)
    : Interface(rank, size),
      store_(without_prefixes(store), open_session(store, rank, size, timeout)),
      options_(c10::make_intrusive<Options>("unisono", timeout)),
      group_(store_.own(), "group", rank, size, timeout),
      allocator_(std::make_shared<SharedAllocator>(group_)),
      channels_(store_, group_, rank, size) {}

GroupBackend::~GroupBackend() {
  abort();
  queue_.finish();
  channels_.finish();
}

// A tensor keeps its block, and not the allocator: it may outlive the group.
Tensor GroupBackend::allocateTensor(long size, at::TensorOptions options) {
  TORCH_CHECK_VALUE(options.device().is_cpu(),
                    "unisono: the back end allocates tensors in host "
                    "memory, not on ",
                    options.device());
  TORCH_CHECK_VALUE(size >= 0, "unisono: a tensor of ", size, " elements");
  const std::size_t bytes = static_cast<std::size_t>(size) * options.dtype().itemsize();
  auto block = std::make_shared<c10::DataPtr>(allocator_->allocate(bytes));
  void* const data = block->get();
  return at::from_blob(
      data, {size}, [block](void*) {}, options);
}

GroupBackend::BackendPtr GroupBackend::split(const StorePtr& store, const std::vector<int>& ranks,
                                             const OptionsPtr& options) {
  const auto own = std::ranges::find(ranks, getRank());
  if (own == ranks.end()) return nullptr;
  return make(store, static_cast<int>(own - ranks.begin()), static_cast<int>(ranks.size()),
              options->timeout);
}

// As split: over the store, so it needs nothing of a group that has failed.
GroupBackend::BackendPtr GroupBackend::shrink(const std::vector<int64_t>& excluded, int flags,
                                              const OptionsPtr& options) {
  if (flags == kShrinkAborts) abort();
  std::string name = "unisono-without";
  for (const int64_t rank : excluded) name += "-" + std::to_string(rank);
  const auto is_excluded = [&](int rank) { return std::ranges::count(excluded, rank) > 0; };
  int own = -1, size = 0;
  for (int rank = 0; rank < getSize(); ++rank) {
    if (is_excluded(rank)) continue;
    if (rank == getRank()) own = size;
    ++size;
  }
  TORCH_CHECK_VALUE(own >= 0, "unisono: shrink: rank ", getRank(), " is one of the excluded ranks");
  const auto timeout = options ? options->timeout : options_->timeout;
  return make(c10::make_intrusive<c10d::PrefixStore>(name, store_.own()), own, size, timeout);
}

std::vector<std::string> GroupBackend::names_under_way() const {
  std::vector<std::string> names = queue_.names_under_way();
  if (names.empty() && group_.is_in_call()) names.emplace_back("a call of another thread");
  for (std::string& send : channels_.names_under_way()) names.push_back(std::move(send));
  return names;
}

void GroupBackend::stop_accepting() {
  group_.stop_accepting();
  channels_.stop_accepting();
}

void GroupBackend::abort() {
  group_.abort();
  channels_.abort();
}

void GroupBackend::shutdown() {
  without_gil([this] {
    // Before the wait for messages that were sent: their receivers may leave now, too.
    if (own_process_.is_here()) note_departure(*store_.own(), getRank());
    queue_.finish();
    channels_.finish();
    store_.release();
    group_.close();
  });
}

void GroupBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  const bool is_unset = options.timeout == c10d::kUnsetTimeout;
  const std::lock_guard lock(monitoring_);
  if (!monitored_barrier_) {
    monitored_barrier_ =
        std::make_unique<MonitoredBarrier>(getRank(), getSize(), group_.abort_flag());
  }
  monitored_barrier_->run(store_.get([] {}), is_unset ? options_->timeout : options.timeout,
                          wait_all_ranks);
}

GroupBackend::WorkPtr GroupBackend::send(Tensors& tensors, int target, int tag) {
  return channels_.between(getRank(), target).send(message_of(tensors), tag, options_->timeout);
}

GroupBackend::WorkPtr GroupBackend::recv(Tensors& tensors, int source, int tag) {
  return channels_.between(source, getRank()).receive(message_of(tensors), tag, options_->timeout);
}

GroupBackend::WorkPtr GroupBackend::recvAnysource(Tensors& tensors, int tag) {
  return channels_.receive_any(message_of(tensors), tag, options_->timeout);
}

}  // namespace unisono::pytorch
