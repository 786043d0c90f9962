// SPDX-License-Identifier: BSD-3-Clause
#include "channel.hpp"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "caller_stream.hpp"
#include "errors.hpp"
#include "store/store_exchange.hpp"

namespace unisono::pytorch {

Channel::Channel(c10::intrusive_ptr<c10d::Store> store, int source, int target, int rank)
    : store_(std::move(store)), source_(source), target_(target), rank_(rank) {}

std::string Channel::name() const {
  return std::to_string(source_) + "-to-" + std::to_string(target_);
}

// A store's connection serves one thread at a time, and this one waits.
void Channel::open(Milliseconds timeout) {
  if (is_open_) return;
  group_.start(store_->clone(), name(), rank_ == source_ ? 0 : 1, 2, timeout);
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
  queue_.push(work, [this, tensor, tag, timeout, stream = CallerStream({tensor})] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto on_stream = stream.enter();
    const Flat values = Flat::output(tensor);
    const std::lock_guard lock(receiving_);
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

int Channel::receive_header(unisono_comm_t comm) {
  if (header_request_ != nullptr) return unisono_wait(&header_request_);
  return unisono_broadcast(&header_, sizeof header_, UNISONO_BYTE, 0, comm);
}

int Channel::has_header(unisono_comm_t comm, bool& has) {
  int code = UNISONO_OK, done = 0;
  if (header_request_ == nullptr) {
    code =
        unisono_broadcast_start(&header_, sizeof header_, UNISONO_BYTE, 0, comm, &header_request_);
  }
  if (code == UNISONO_OK) code = unisono_test(&header_request_, &done);
  has = done != 0;
  return code;
}

// The message of the header: into the target, or to the early ones.
int Channel::receive_body(unisono_comm_t comm, const Flat& target, std::int64_t tag, bool& fits) {
  fits = header_.tag == tag && header_.bytes == target.bytes();
  std::vector<char> other(fits ? 0 : static_cast<std::size_t>(header_.bytes));
  if (header_.bytes > 0) {
    const int code = unisono_broadcast(fits ? target.data() : other.data(), header_.bytes,
                                       UNISONO_BYTE, 0, comm);
    if (code != UNISONO_OK) return code;
  }
  if (fits) return UNISONO_OK;
  if (header_.tag == tag) require_length(header_.bytes, target, source_);
  early_.push_back({header_.tag, std::move(other)});
  return UNISONO_OK;
}

int Channel::receive_into(unisono_comm_t comm, const Flat& target, std::int64_t tag) {
  for (;;) {
    int code = receive_header(comm);
    bool fits = false;
    if (code == UNISONO_OK) code = receive_body(comm, target, tag, fits);
    if (code != UNISONO_OK || fits) return code;
  }
}

bool Channel::take(const Flat& target, int tag, Milliseconds timeout, c10d::Store& store) {
  const std::unique_lock lock(receiving_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  if (take_early(target, tag)) return true;
  // A sender opens its end before its first message.
  if (!is_open_ && !StoreExchange::has_begun(store, name(), 0)) return false;
  open(timeout);
  bool has = false, fits = false;
  group_.run("unisono:recv", timeout, [&](unisono_comm_t comm) {
    const int code = has_header(comm, has);
    return code == UNISONO_OK && has ? receive_body(comm, target, tag, fits) : code;
  });
  return fits;
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

namespace {

// Between two looks at all sources, after some without a pause.
constexpr std::chrono::microseconds kFirstPause{20}, kLongestPause{2000};

}  // namespace

// A connection of its own, as another thread may wait in the group's.
c10d::Store& Channels::probed_store() {
  if (!probed_store_) probed_store_ = store_->clone();
  return *probed_store_;
}

int Channels::take_from_any(const Flat& target, int tag, Milliseconds timeout) {
  const auto limit = std::chrono::steady_clock::now() + timeout;
  auto pause = kFirstPause;
  for (;;) {
    for (int source = 0; source < size_; ++source) {
      if (source == rank_) continue;
      if (between(source, rank_).take(target, tag, timeout, probed_store())) {
        return source;
      }
    }
    TORCH_CHECK_WITH(DistBackendError, !is_ending_, "unisono: recv: the group has been aborted");
    TORCH_CHECK_WITH(DistBackendError, std::chrono::steady_clock::now() < limit,
                     "unisono: recv: rank ", rank_, " timed out after ", timeout.count(),
                     " ms: no rank has sent a message with tag ", tag);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

c10::intrusive_ptr<c10d::Work> Channels::receive_any(const Tensor& tensor, int tag,
                                                     Milliseconds timeout) {
  auto work = c10::make_intrusive<QueuedWork>(rank_, c10d::OpType::RECVANYSOURCE, Tensors{tensor});
  any_.push(work, [this, tensor, tag, timeout, work = work.get(), stream = CallerStream({tensor})] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto on_stream = stream.enter();
    const Flat values = Flat::output(tensor);
    work->set_source(take_from_any(values, tag, timeout));
    values.write_back();
  });
  return work;
}

void Channels::abort() {
  is_ending_ = true;
  const std::lock_guard lock(mutex_);
  for (const auto& [ends, channel] : all_) channel->abort();
}

void Channels::finish() {
  is_ending_ = true;
  any_.finish();
  const std::lock_guard lock(mutex_);
  for (const auto& [ends, channel] : all_) channel->finish();
}

}  // namespace unisono::pytorch
