// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp/outgoing_stream.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "transport/tcp/stream_socket.hpp"

namespace unisono::transport {
namespace {

// Between attempts to connect: a rank that listens again is found soon, and one that does not
// costs little.
constexpr std::int64_t kFirstPauseNs = base::kSecond;
constexpr std::int64_t kLongestPauseNs = 60 * base::kSecond;

bool is_for_later(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

}  // namespace

bool OutgoingStream::accepts_message() {
  switch (state_) {
    case State::idle:
      if (base::now_ns() >= retry_ns_) connect();
      return false;
    case State::connecting:
    case State::greeting:
    case State::failed:
      return false;
    case State::open:
      return true;
  }
  return false;
}

// ---- connecting --------------------------------------------------------------------------------

void OutgoingStream::connect() {
  auto begun = start_to_connect(identity_.address, to_, identity_.congestion);
  if (!begun.ok()) return rest(begun.error().message);
  socket_ = std::move(*begun);
  state_ = State::connecting;
  watches_writing_ = true;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP;
  event.data.u64 = poller_.id;
  if (epoll_ctl(poller_.descriptor, EPOLL_CTL_ADD, socket_.get(), &event) != 0) {
    rest(fmt::format("epoll_ctl: {}", error_text(errno)));
  }
}

void OutgoingStream::take_connection() {
  if (const int error = pending_error(socket_); error != 0) {
    return rest(fmt::format("cannot connect to {}: {}", endpoint_text(to_), error_text(error)));
  }
  set_stream_options(socket_, identity_.silence_ns);
  hello_ = encode_hello({.from = static_cast<std::uint32_t>(identity_.rank),
                         .to = static_cast<std::uint32_t>(target_),
                         .tags = identity_.tags,
                         .nonce = random_nonce()},
                        identity_.key);
  challenge_have_ = 0;
  state_ = State::greeting;
  send_or_keep(hello_);
}

void OutgoingStream::take_challenge() {
  const ssize_t got = recv(socket_.get(), challenge_.data() + challenge_have_,
                           challenge_.size() - challenge_have_, MSG_DONTWAIT);
  if (got < 0 && is_for_later(errno)) return;
  if (got <= 0) {
    return rest(fmt::format("{} ended the connection before it was a stream: {}",
                            endpoint_text(to_), got == 0 ? "closed" : error_text(errno)));
  }
  challenge_have_ += static_cast<std::size_t>(got);
  if (challenge_have_ < challenge_.size()) return;
  const auto told = decode_challenge(challenge_, hello_, identity_.key);
  if (!told) {
    return rest(fmt::format("the process that listens at {} does not have the job's key",
                            endpoint_text(to_)));
  }
  if (told->tags != common_tags(identity_.tags, told->tags)) {
    return rest(fmt::format("{} wants tags that this rank does not", endpoint_text(to_)));
  }
  const StreamSession session = make_session(hello_, *told, identity_.key);
  header_key_ = session.header_key;
  tagger_ = make_payload_tagger(PayloadTagger::choose(told->tags), session.payload_key);
  if (tagger_ == nullptr) return rest("no memory for the tags of a stream");
  number_ = 0;
  pause_ns_ = 0;
  state_ = State::open;
  send_or_keep(session.answer);
}

void OutgoingStream::look(std::uint32_t events) {
  switch (state_) {
    case State::idle:
    case State::failed:
      return;
    case State::connecting:
      return take_connection();
    case State::greeting:
      flush();
      if (state_ == State::greeting) take_challenge();
      return;
    case State::open:
      break;
  }
  flush();
  if (state_ == State::open && (events & ~std::uint32_t{EPOLLOUT}) != 0) find_end();
}

// The other side sends nothing on this connection, so whatever can be read is its end.
void OutgoingStream::find_end() {
  std::byte byte{};
  const ssize_t got = recv(socket_.get(), &byte, sizeof byte, MSG_DONTWAIT | MSG_PEEK);
  if (got < 0 && is_for_later(errno)) return;
  if (got > 0) {
    break_off("sent bytes on a stream that is ours");
  } else {
    break_off(got == 0 ? "closed by the other side" : error_text(errno));
  }
}

// ---- writing -----------------------------------------------------------------------------------

void OutgoingStream::write(const Transfer& transfer) {
  if (state_ != State::open) return;  // the rank is lost
  std::array<FrameHeader, kFramesInBatch> headers;
  std::array<iovec, 2 * kFramesInBatch> parts;
  std::size_t count = 0;
  std::size_t done = 0;
  const bool has_flag = transfer.flag != kNoFlag;
  do {
    const std::size_t piece = std::min(kMostFrameBytes, transfer.bytes - done);
    const std::span payload(transfer.from + done, piece);
    StreamFrame frame{.place = transfer.offset + done, .bytes = static_cast<std::uint32_t>(piece)};
    done += piece;
    if (done == transfer.bytes && has_flag) {
      frame.flag = transfer.flag;
      frame.value = transfer.flag_value;
      frame.forward = transfer.forward;
    }
    if (piece != 0) frame.payload = tagger_->tag(number_, payload);
    headers[count] = encode_frame(frame, header_key_, number_++);
    parts[2 * count] = {headers[count].data(), kFrameHeaderBytes};
    parts[2 * count + 1] = {const_cast<std::byte*>(payload.data()), payload.size()};
    ++count;
  } while (done < transfer.bytes);
  message_is_open_ = true;
  send_or_keep(std::span(parts).first(2 * count), !has_flag);
  if (has_flag && state_ == State::open) message_is_open_ = false;
}

void OutgoingStream::send_or_keep(std::span<const std::byte> bytes) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  send_or_keep({&part, 1}, false);
}

void OutgoingStream::send_or_keep(std::span<iovec> parts, bool more) {
  std::size_t sent = 0;
  if (unsent_from_ == unsent_.size()) {
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t taken =
        sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    if (taken < 0 && !is_for_later(errno)) return break_off(error_text(errno));
    sent = taken < 0 ? 0 : static_cast<std::size_t>(taken);
    moved_ += sent;
  }
  try {
    for (const iovec& part : parts) {
      const std::size_t gone = std::min(sent, part.iov_len);
      sent -= gone;
      keep({static_cast<const std::byte*>(part.iov_base) + gone, part.iov_len - gone});
    }
  } catch (const std::bad_alloc&) {
    message_is_open_ = true;
    return break_off("no memory for bytes that it does not take yet");
  }
  if (unsent_from_ < unsent_.size()) watch(true);
}

// Bytes that have left are removed once they are the greater part.
void OutgoingStream::keep(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (unsent_from_ > unsent_.size() / 2) {
    unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<std::ptrdiff_t>(unsent_from_));
    unsent_from_ = 0;
  }
  unsent_.insert(unsent_.end(), bytes.begin(), bytes.end());
}

void OutgoingStream::flush() {
  while (unsent_from_ < unsent_.size()) {
    const ssize_t taken = send(socket_.get(), unsent_.data() + unsent_from_,
                               unsent_.size() - unsent_from_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (taken < 0 && is_for_later(errno)) return watch(true);
    if (taken < 0) return break_off(error_text(errno));
    moved_ += static_cast<std::size_t>(taken);
    unsent_from_ += static_cast<std::size_t>(taken);
  }
  unsent_.clear();
  unsent_from_ = 0;
  watch(false);
}

void OutgoingStream::watch(bool for_writing) {
  if (watches_writing_ == for_writing) return;
  watches_writing_ = for_writing;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | (for_writing ? std::uint32_t{EPOLLOUT} : 0U);
  event.data.u64 = poller_.id;
  epoll_ctl(poller_.descriptor, EPOLL_CTL_MOD, socket_.get(), &event);
}

bool OutgoingStream::has_unacknowledged() const {
  return state_ == State::open &&
         (unsent_from_ < unsent_.size() || unacknowledged_bytes(socket_) != 0);
}

// ---- the end -----------------------------------------------------------------------------------

void OutgoingStream::close() {
  leave_poller(poller_.descriptor, socket_);
  socket_.reset();
  state_ = State::idle;
  unsent_.clear();
  unsent_from_ = 0;
  message_is_open_ = false;
  tagger_.reset();
}

// Nothing is lost if the other side has all that was written: the next message connects again.
void OutgoingStream::break_off(const std::string& why) {
  if (state_ != State::open) return rest(why);
  const bool loses = message_is_open_ || has_unacknowledged();
  close();
  if (!loses) return;
  state_ = State::failed;
  error_ = fmt::format("tcp: the stream to rank {} ({}) broke with bytes that it may lack: {}",
                       target_, endpoint_text(to_), why);
}

void OutgoingStream::rest(const std::string& why) {
  close();
  error_ = why;
  was_refused_ = true;
  pause_ns_ = std::clamp(2 * pause_ns_, kFirstPauseNs, kLongestPauseNs);
  retry_ns_ = base::now_ns() + pause_ns_;
}

}  // namespace unisono::transport
