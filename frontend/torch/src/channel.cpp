// SPDX-License-Identifier: BSD-3-Clause
#include "channel.hpp"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "errors.hpp"

namespace unisono::pytorch {

Channel::Channel(c10::intrusive_ptr<c10d::Store> store, int source, int target, int rank)
    : store_(std::move(store)), source_(source), target_(target), rank_(rank) {}

// A store's connection serves one thread at a time, and this one waits.
void Channel::open(Milliseconds timeout) {
  if (is_open_) return;
  const std::string name = std::to_string(source_) + "-to-" + std::to_string(target_);
  group_.start(store_->clone(), name, rank_ == source_ ? 0 : 1, 2, timeout);
  is_open_ = true;
}

c10::intrusive_ptr<c10d::Work> Channel::send(const Tensor& tensor, int tag, Milliseconds timeout) {
  {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  Tensor values = Flat::input(tensor).tensor();
  const bool is_buffered = static_cast<std::int64_t>(values.nbytes()) <= kBufferedBytes;
  if (is_buffered && values.is_same(tensor)) values = values.clone();
  auto work = c10::make_intrusive<QueuedWork>(rank_, c10d::OpType::SEND, Tensors{tensor});
  queue_.push(work, [this, values, tag, timeout, is_buffered] {
    try {
      open(timeout);
      group_.run("unisono:send", timeout, [&](unisono_comm_t comm) {
        Header header{tag, static_cast<std::int64_t>(values.nbytes())};
        const int code = unisono_broadcast(&header, sizeof header, UNISONO_BYTE, 0, comm);
        if (code != UNISONO_OK || header.bytes == 0) return code;
        return unisono_broadcast(values.data_ptr(), header.bytes, UNISONO_BYTE, 0, comm);
      });
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      if (!is_buffered) throw;
    }
  });
  if (!is_buffered) return work;
  auto sent = c10::make_intrusive<QueuedWork>(rank_, c10d::OpType::SEND, Tensors{tensor});
  sent->complete(nullptr);
  return sent;
}

c10::intrusive_ptr<c10d::Work> Channel::receive(const Tensor& tensor, int tag,
                                                Milliseconds timeout) {
  auto work = c10::make_intrusive<QueuedWork>(rank_, c10d::OpType::RECV, Tensors{tensor});
  queue_.push(work, [this, tensor, tag, timeout] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const Flat values = Flat::output(tensor);
    if (!take_early(values, tag)) {
      open(timeout);
      group_.run("unisono:recv", timeout,
                 [&](unisono_comm_t comm) { return receive_into(comm, values, tag); });
    }
    values.write_back();
  });
  return work;
}

namespace {

void require_length(std::int64_t sent, const Flat& target, int source) {
  TORCH_CHECK_WITH(DistBackendError, sent == target.bytes(), "unisono: recv: rank ", source,
                   " has sent ", sent, " bytes, and the tensor has ", target.bytes());
}

}  // namespace

int Channel::receive_into(unisono_comm_t comm, const Flat& target, std::int64_t tag) {
  for (;;) {
    Header header;
    int code = unisono_broadcast(&header, sizeof header, UNISONO_BYTE, 0, comm);
    if (code != UNISONO_OK) return code;
    const bool fits = header.tag == tag && header.bytes == target.bytes();
    std::vector<char> other(fits ? 0 : static_cast<std::size_t>(header.bytes));
    if (header.bytes > 0) {
      code = unisono_broadcast(fits ? target.data() : other.data(), header.bytes, UNISONO_BYTE, 0,
                               comm);
      if (code != UNISONO_OK) return code;
    }
    if (fits) return UNISONO_OK;
    if (header.tag == tag) require_length(header.bytes, target, source_);
    early_.push_back({header.tag, std::move(other)});
  }
}

bool Channel::take_early(const Flat& target, std::int64_t tag) {
  const auto found = std::ranges::find(early_, tag, &Message::tag);
  if (found == early_.end()) return false;
  const std::vector<char> bytes = std::move(found->bytes);
  early_.erase(found);
  require_length(std::ssize(bytes), target, source_);
  if (!bytes.empty()) std::memcpy(target.data(), bytes.data(), bytes.size());
  return true;
}

void Channel::finish() {
  if (rank_ == target_) abort();
  queue_.finish();
}

Channel& Channels::between(int source, int target) {
  const int peer = source == rank_ ? target : source;
  TORCH_CHECK_VALUE(peer >= 0 && peer < size_ && peer != rank_, "unisono: rank ", rank_,
                    " cannot exchange messages with rank ", peer, " of ", size_, " ranks");
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Channel>& found = all_[{source, target}];
  if (!found) found = std::make_unique<Channel>(store_, source, target, rank_);
  return *found;
}

void Channels::abort() {
  const std::lock_guard lock(mutex_);
  for (const auto& [ends, channel] : all_) channel->abort();
}

void Channels::finish() {
  const std::lock_guard lock(mutex_);
  for (const auto& [ends, channel] : all_) channel->finish();
}

}  // namespace unisono::pytorch
