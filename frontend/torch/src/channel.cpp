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
namespace {

// The values at one end of a message. Wrong tensors are errors of the call, not of the channel.
Flat values_of(const Tensor& tensor, Flat (*flat)(const Tensor&), const char* name) {
  try {
    return flat(tensor);
  } catch (const BadArgument& why) {
    why.raise(name);
  }
}

}  // namespace

void Receipt::end(std::exception_ptr why) {
  has_ended = true;
  error = why;
}

void Receipt::tell() const {
  if (work) work->complete(error);
}

class Channel::Turn {
 public:
  // At its end, what has ended in it goes to `ended`.
  Turn(Channel& channel, std::unique_lock<std::mutex> lock, Receipts& ended)
      : channel_(channel), lock_(std::move(lock)), ended_(ended) {}
  ~Turn() {
    if (!lock_.owns_lock()) return;
    ended_.insert(ended_.end(), channel_.ended_.begin(), channel_.ended_.end());
    channel_.ended_.clear();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool is_own() const { return lock_.owns_lock(); }

 private:
  Channel& channel_;
  std::unique_lock<std::mutex> lock_;
  Receipts& ended_;
};

Channel::Channel(StoreConnection& store, Group& whole, int source, int target, int rank)
    : store_(store),
      whole_(whole),
      source_(source),
      target_(target),
      rank_(rank),
      send_name_("unisono:send from rank " + std::to_string(source) + " to rank " +
                 std::to_string(target)),
      receive_name_("unisono:recv of rank " + std::to_string(target) + " from rank " +
                    std::to_string(source)) {}

std::string Channel::name() const {
  return std::to_string(source_) + "-to-" + std::to_string(target_);
}

c10::intrusive_ptr<c10d::Store> Channel::connected() {
  return store_.get([&] {
    TORCH_CHECK_WITH(DistBackendError, !group_.is_aborted(), message(),
                     ": the group has been aborted");
  });
}

void Channel::open(const Group::Limit& limit) {
  if (is_open_) return;
  // A rank that leaves takes no messages any more, but those that it has sent are still to come.
  MessagePeer other{message(), peer(), rank_ == source_,
                    [this] { return whole_.why_lost(peer()); }};
  group_.start(connected(), name(), rank_ == source_ ? 0 : 1, 2, limit, std::move(other),
               {source_, target_});
  is_open_ = true;
}

c10::intrusive_ptr<c10d::Work> Channel::send(const Tensor& tensor, int tag, Milliseconds timeout) {
  {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  Tensor values = values_of(tensor, &Flat::input, "unisono:send").tensor();
  const bool is_buffered = static_cast<std::int64_t>(values.nbytes()) <= kBufferedBytes;
  if (is_buffered && values.is_same(tensor)) values = values.clone();
  const char* const title = "unisono:send";
  auto work = c10::make_intrusive<QueuedWork>(rank_, c10d::OpType::SEND, Tensors{tensor},
                                              is_buffered ? nullptr : title, Tensors{tensor});
  queue_.push(work, [this, values, tag, limit = Group::Limit(timeout), is_buffered] {
    try {
      open(limit);
      group_.run(send_name_.c_str(), limit.timeout, [&](unisono_comm_t comm) {
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
  auto sent = c10::make_intrusive<QueuedWork>(rank_, c10d::OpType::SEND, Tensors{tensor}, title,
                                              Tensors{tensor});
  sent->complete(nullptr);
  return sent;
}

c10::intrusive_ptr<c10d::Work> Channel::receive(const Tensor& tensor, int tag,
                                                Milliseconds timeout) {
  own_process_.require("unisono:recv");
  const at::AutoDispatchBelowADInplaceOrView guard;
  auto work = c10::make_intrusive<QueuedWork>(rank_, c10d::OpType::RECV, Tensors{tensor},
                                              "unisono:recv", Tensors{tensor});
  work->set_source(source_);
  auto receipt = std::make_shared<Receipt>(
      Receipt{values_of(tensor, &Flat::output, "unisono:recv"), tag, CallerStream({tensor}), work});
  Message early;
  {
    const std::lock_guard lock(posting_);
    if (!find_early(tag, early)) {
      queue_.push(nullptr, [this, receipt, to_open = Group::Limit(timeout)] {
        serve(receipt, to_open, to_open.timeout);
      });
      posted_.push_back(receipt);
      return work;
    }
  }
  put(*receipt, early);
  receipt->tell();
  return work;
}

// Until this receive has its message; the messages of other receives on the way are theirs. They
// are told at once: the message that this one waits for may be sent only then. Their callbacks may
// wait for this one, so that another thread goes on with it.
void Channel::serve(const std::shared_ptr<Receipt>& receipt, const Group::Limit& to_open,
                    const Group::Limit& limit) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  Receipts ended;
  while (!serve_one(receipt, to_open, limit, ended)) {
    if (ended.empty()) continue;
    go_on(receipt, to_open, limit, ended);
    break;
  }
  const WorkQueue::Callbacks callbacks(queue_);
  for (const std::shared_ptr<Receipt>& each : ended) each->tell();
}

void Channel::go_on(const std::shared_ptr<Receipt>& receipt, const Group::Limit& to_open,
                    const Group::Limit& limit, Receipts& ended) {
  try {
    queue_.push(nullptr, [this, receipt, to_open, limit] { serve(receipt, to_open, limit); });
  } catch (...) {  // the group has been shut down
    const Turn turn(*this, std::unique_lock(receiving_), ended);
    if (!receipt->has_ended) give_up(receipt);
  }
}

// One message. True: the receive has ended.
bool Channel::serve_one(const std::shared_ptr<Receipt>& receipt, const Group::Limit& to_open,
                        const Group::Limit& limit, Receipts& ended) {
  const Turn turn(*this, std::unique_lock(receiving_), ended);
  if (receipt->has_ended) return true;
  try {
    open(to_open);
    group_.run(receive_name_.c_str(), limit, [&](unisono_comm_t comm) {
      const int code = receive_header(comm);
      return code == UNISONO_OK ? receive_body(comm, nullptr) : code;
    });
  } catch (...) {
    give_up(receipt);
  }
  return receipt->has_ended;
}

// In a Turn, within a catch.
void Channel::give_up(const std::shared_ptr<Receipt>& receipt) {
  {
    const std::lock_guard posting(posting_);
    std::erase(posted_, receipt);
  }
  receipt->end(std::current_exception());
  ended_.push_back(receipt);
}

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

// The message of the header: to the first receive of its tag, or to the early ones.
int Channel::receive_body(unisono_comm_t comm, Receipt* from_any) {
  std::shared_ptr<Receipt> posted = claim(header_.tag, nullptr);
  const bool is_for_any = from_any != nullptr && from_any->tag == header_.tag;
  Receipt* const receipt = posted ? posted.get() : is_for_any ? from_any : nullptr;
  const bool fits = receipt != nullptr && header_.bytes == receipt->values.bytes();
  Message message{header_.tag,
                  std::vector<char>(fits ? 0 : static_cast<std::size_t>(header_.bytes))};
  if (header_.bytes > 0) {
    void* const room = fits ? receipt->values.data() : message.bytes.data();
    const int code = unisono_broadcast(room, header_.bytes, UNISONO_BYTE, 0, comm);
    if (code != UNISONO_OK) return code;
  }
  if (fits) {
    settle(*receipt);
  } else if (receipt != nullptr) {
    put(*receipt, message);
  } else if (posted = claim(message.tag, &message); posted) {
    put(*posted, message);
  }
  if (posted) ended_.push_back(std::move(posted));
  return UNISONO_OK;
}

// The first receive that waits for this tag. Without one, the message joins the early ones.
std::shared_ptr<Receipt> Channel::claim(std::int64_t tag, Message* or_keep) {
  const std::lock_guard lock(posting_);
  const auto found = std::ranges::find(
      posted_, tag, [](const std::shared_ptr<Receipt>& receipt) { return receipt->tag; });
  if (found == posted_.end()) {
    if (or_keep != nullptr) early_.push_back(std::move(*or_keep));
    return nullptr;
  }
  std::shared_ptr<Receipt> receipt = std::move(*found);
  posted_.erase(found);
  return receipt;
}

// Under posting_.
bool Channel::find_early(std::int64_t tag, Message& message) {
  const auto found = std::ranges::find(early_, tag, &Message::tag);
  if (found == early_.end()) return false;
  message = std::move(*found);
  early_.erase(found);
  return true;
}

void Channel::put(Receipt& receipt, const Message& message) const {
  const auto bytes = static_cast<std::int64_t>(message.bytes.size());
  if (bytes != receipt.values.bytes()) {
    const std::string text = "unisono: recv: rank " + std::to_string(source_) + " has sent " +
                             std::to_string(bytes) + " bytes, and the tensor has " +
                             std::to_string(receipt.values.bytes());
    receipt.end(
        std::make_exception_ptr(c10::DistBackendError({__func__, __FILE__, __LINE__}, text)));
    return;
  }
  if (bytes > 0) std::memcpy(receipt.values.data(), message.bytes.data(), message.bytes.size());
  settle(receipt);
}

void Channel::settle(Receipt& receipt) {
  std::exception_ptr error;
  try {
    const auto on_stream = receipt.stream.enter();
    receipt.values.write_back();
  } catch (...) {  // of torch: the channel goes on
    error = std::current_exception();
  }
  receipt.end(error);
}

bool Channel::take_early(Receipt& receipt) {
  Message early;
  {
    const std::lock_guard lock(posting_);
    if (!find_early(receipt.tag, early)) return false;
  }
  put(receipt, early);
  return true;
}

bool Channel::take(Receipt& receipt, Milliseconds timeout, Receipts& ended) {
  const Turn turn(*this, std::unique_lock(receiving_, std::try_to_lock), ended);
  if (take_early(receipt)) return true;
  if (!turn.is_own()) return false;
  // A sender opens its end before its first message.
  if (!is_open_ && !StoreExchange::has_begun(*connected(), name(), 0)) return false;
  open(timeout);
  bool has = false;
  group_.run(receive_name_.c_str(), timeout, [&](unisono_comm_t comm) {
    const int code = has_header(comm, has);
    return code == UNISONO_OK && has ? receive_body(comm, &receipt) : code;
  });
  return receipt.has_ended;
}

void Channel::finish() {
  if (rank_ == target_) abort();
  queue_.finish();
}

std::vector<std::string> Channel::names_under_way() const {
  std::vector<std::string> names;
  if (rank_ == source_) names = queue_.names_under_way();
  for (std::string& each : names) each += " to rank " + std::to_string(target_);
  return names;
}

Channel& Channels::between(int source, int target) {
  const int peer = source == rank_ ? target : source;
  TORCH_CHECK_VALUE(peer >= 0 && peer < size_ && peer != rank_, "unisono: rank ", rank_,
                    " cannot exchange messages with rank ", peer, " of ", size_, " ranks");
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Channel>& found = all_[{source, target}];
  if (!found) {
    found = std::make_unique<Channel>(store_, group_, source, target, rank_);
    if (is_closing_) found->stop_accepting();
    if (is_ending_) found->abort();
  }
  return *found;
}

namespace {

// Between two looks at all sources, after some without a pause.
constexpr std::chrono::microseconds kFirstPause{20}, kLongestPause{2000};

}  // namespace

// With looking_. Takes a message for it if one is there. An error ends it.
std::exception_ptr Channels::try_to_take(const AnyReceipt& any, Channel::Receipts& ended) {
  Receipt& receipt = *any.receipt;
  try {
    for (int source = 0; source < size_; ++source) {
      if (source == rank_) continue;
      if (!between(source, rank_).take(receipt, any.timeout, ended)) continue;
      receipt.work->set_source(source);
      return nullptr;
    }
    TORCH_CHECK_WITH(DistBackendError, !is_ending_, "unisono: recv: the group has been aborted");
    TORCH_CHECK_WITH(DistBackendError, std::chrono::steady_clock::now() < any.limit,
                     "unisono: recv: rank ", rank_, " timed out after ", any.timeout.count(),
                     " ms: no rank has sent a message with tag ", receipt.tag);
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

// Those that have ended are not told yet.
Channel::Receipts Channels::look_for_any() {
  const std::lock_guard lock(looking_);
  std::vector<AnyReceipt> waiting;
  {
    const std::lock_guard posting(posting_);
    waiting = waiting_;
  }
  Channel::Receipts ended;
  for (const AnyReceipt& any : waiting) {
    if (any.receipt->has_ended) continue;
    if (const std::exception_ptr error = try_to_take(any, ended)) any.receipt->end(error);
    if (any.receipt->has_ended) ended.push_back(any.receipt);
  }
  const std::lock_guard posting(posting_);
  std::erase_if(waiting_, [](const AnyReceipt& any) { return any.receipt->has_ended; });
  return ended;
}

// Until that one has ended. Others may end before it.
void Channels::serve_any(const Receipt& receipt) {
  const at::AutoDispatchBelowADInplaceOrView on_this_thread;
  auto pause = kFirstPause;
  while (!receipt.work->isCompleted()) {
    const Channel::Receipts ended = look_for_any();
    {
      const WorkQueue::Callbacks callbacks(any_);
      for (const std::shared_ptr<Receipt>& each : ended) each->tell();
    }
    if (!ended.empty()) continue;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

c10::intrusive_ptr<c10d::Work> Channels::receive_any(const Tensor& tensor, int tag,
                                                     Milliseconds timeout) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  auto work = c10::make_intrusive<QueuedWork>(rank_, c10d::OpType::RECVANYSOURCE, Tensors{tensor},
                                              "unisono:recvAnySource", Tensors{tensor});
  auto receipt = std::make_shared<Receipt>(
      Receipt{values_of(tensor, &Flat::output, "unisono:recv"), tag, CallerStream({tensor}), work});
  any_.push(nullptr, [this, receipt] { serve_any(*receipt); });
  const std::lock_guard posting(posting_);
  waiting_.push_back({receipt, timeout, std::chrono::steady_clock::now() + timeout});
  return work;
}

std::vector<std::string> Channels::names_under_way() const {
  std::vector<std::string> names;
  const std::lock_guard lock(mutex_);
  for (const auto& [ends, channel] : all_) {
    for (std::string& send : channel->names_under_way()) names.push_back(std::move(send));
  }
  return names;
}

void Channels::abort() {
  is_ending_ = true;
  const std::lock_guard lock(mutex_);
  for (const auto& [ends, channel] : all_) channel->abort();
}

void Channels::stop_accepting() {
  const std::lock_guard lock(mutex_);
  is_closing_ = true;
  for (const auto& [ends, channel] : all_) channel->stop_accepting();
}

void Channels::finish() {
  is_ending_ = true;
  any_.finish();
  // Outside the lock: callbacks may use other channels, and another thread may abort.
  std::vector<Channel*> every;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [ends, channel] : all_) every.push_back(channel.get());
  }
  for (Channel* const channel : every) channel->finish();
}

}  // namespace unisono::pytorch
