// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp/incoming_stream.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "transport/tcp/stream_socket.hpp"
#include "transport/transport.hpp"

namespace unisono::transport {
namespace {

// In one call of read(), so that one peer does not keep a rank from the others and its steps.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;

static_assert(kHelloBytes <= kFrameHeaderBytes && kAnswerBytes <= kFrameHeaderBytes);

}  // namespace

std::size_t IncomingStream::next_bytes() const {
  switch (next_) {
    case Next::hello:
      return kHelloBytes;
    case Next::answer:
      return kAnswerBytes;
    case Next::header:
      break;
  }
  return kFrameHeaderBytes;
}

IncomingStream::State IncomingStream::read() {
  const std::uint64_t flags_before = flags_;
  std::size_t taken = 0;
  while (taken < kMostAtOnce && flags_ == flags_before &&
         (state_ == State::greeting || state_ == State::open)) {
    // The rest of a payload goes to its place, and the header behind it comes along.
    const std::size_t payload_left = frame_.bytes - payload_have_;
    const std::size_t control_left = next_bytes() - control_have_;
    std::array<iovec, 2> parts{{{nullptr, 0}, {control_.data() + control_have_, control_left}}};
    if (payload_left != 0) {
      if (payload_have_ == 0) begin_payload();
      parts[0] = {destination() + payload_have_, payload_left};
    }
    msghdr message{};
    message.msg_iov = payload_left != 0 ? parts.data() : parts.data() + 1;
    message.msg_iovlen = payload_left != 0 ? 2 : 1;
    const ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got < 0 && errno == EFAULT && lands_) {  // the peer is not to blame
      identity_.landings->refuse(rank_, identity_.region + frame_.place, payload_have_);
      continue;
    }
    if (got <= 0) {
      end(got < 0, errno);
      break;
    }
    const auto count = static_cast<std::size_t>(got);
    taken += count;
    if (!take(count) || count < payload_left + control_left) break;  // no more has come
  }
  return state_;
}

// So many bytes have come: first to the payload, then to `control_`.
bool IncomingStream::take(std::size_t count) {
  const std::size_t to_payload = std::min(count, frame_.bytes - payload_have_);
  if (to_payload != 0) {
    payload_have_ += to_payload;
    bytes_ += to_payload;
    if (payload_have_ == frame_.bytes && !finish_frame()) return false;
  }
  control_have_ += count - to_payload;
  if (next_ == Next::hello && !may_be_hello(std::span(control_).first(control_have_))) {
    return reject();
  }
  if (control_have_ < next_bytes()) return true;
  control_have_ = 0;
  return take_control();
}

bool IncomingStream::take_control() {
  switch (next_) {
    case Next::hello:
      return take_hello();
    case Next::answer:
      return take_answer();
    case Next::header:
      break;
  }
  return take_header();
}

bool IncomingStream::take_hello() {
  std::ranges::copy(std::span(control_).first<kHelloBytes>(), hello_.begin());
  const auto hello = decode_hello(hello_, identity_.key);
  const auto ranks = static_cast<std::uint32_t>(identity_.ranks);
  if (!hello || hello->to != static_cast<std::uint32_t>(identity_.rank) || hello->from >= ranks ||
      hello->from == hello->to) {
    return reject();
  }
  const StreamChallenge told{.nonce = random_nonce(),
                             .tags = common_tags(identity_.tags, hello->tags)};
  session_ = make_session(hello_, told, identity_.key);
  tagger_ = make_payload_tagger(PayloadTagger::choose(told.tags), session_.payload_key);
  if (tagger_ == nullptr) return reject();
  const ChallengeBytes challenge = encode_challenge(told, hello_, identity_.key);
  // The first bytes of a connection always have room in its buffer.
  if (send(socket_.get(), challenge.data(), challenge.size(), MSG_DONTWAIT | MSG_NOSIGNAL) !=
      static_cast<ssize_t>(challenge.size())) {
    return reject();
  }
  rank_ = static_cast<int>(hello->from);
  next_ = Next::answer;
  return true;
}

bool IncomingStream::take_answer() {
  if (!are_equal(std::span(control_).first<kAnswerBytes>(), session_.answer)) return reject();
  set_stream_options(socket_, identity_.silence_ns);
  state_ = State::open;
  next_ = Next::header;
  return true;
}

bool IncomingStream::take_header() {
  const auto frame = decode_frame(control_, session_.header_key, number_, identity_.region_bytes);
  if (!frame) {
    state_ = State::broken;
    error_ = fmt::format("rank {}: a header on its stream is damaged, or of another origin", rank_);
    return false;
  }
  frame_ = *frame;
  payload_have_ = 0;
  return frame_.bytes != 0 || finish_frame();
}

// Only now: its header has come with the message before, when nobody expected it yet.
void IncomingStream::begin_payload() {
  lands_ = identity_.landings != nullptr &&
           identity_.landings->begin(rank_, identity_.region + frame_.place, frame_.bytes);
}

std::byte* IncomingStream::destination() const {
  std::byte* const place = identity_.region + frame_.place;
  return lands_ ? identity_.landings->destination(rank_, place) : place;
}

// All of the payload is there.
bool IncomingStream::finish_frame() {
  const std::span<const std::byte> payload(destination(), frame_.bytes);
  if (!payload.empty() && !are_equal(tagger_->tag(number_, payload), frame_.payload)) {
    state_ = State::broken;
    error_ =
        fmt::format("rank {}: a payload on its stream is damaged, or of another origin", rank_);
    return false;
  }
  if (lands_) identity_.landings->finish(rank_, identity_.region + frame_.place);
  lands_ = false;
  ++number_;
  message_is_open_ = frame_.flag == kNoFlag;
  frame_.bytes = 0;
  payload_have_ = 0;
  if (message_is_open_) return true;
  raise(reinterpret_cast<std::uint64_t*>(identity_.region + frame_.flag), frame_.value,
        frame_.forward);
  ++flags_;
  return true;
}

bool IncomingStream::is_amid_message() const {
  return message_is_open_ || frame_.bytes != 0 || control_have_ != 0;
}

void IncomingStream::end(bool by_error, int error_number) {
  if (state_ == State::greeting) {
    state_ = State::rejected;
    return;
  }
  state_ = is_amid_message() ? State::broken : State::ended;
  if (state_ == State::ended) return;
  error_ = fmt::format("rank {}: its stream ended amid a message: {}", rank_,
                       by_error ? error_text(error_number) : "closed by the other side");
}

bool IncomingStream::reject() {
  state_ = State::rejected;
  rank_ = -1;
  return false;
}

}  // namespace unisono::transport
