// SPDX-License-Identifier: BSD-3-Clause
// OutgoingStream: this rank's connection to another, on which it writes to that rank's region. It
// is made when the first message wants it; until it is open, and after a connection that could not
// be made, messages have to go another way. If it breaks while the other side may lack some of its
// bytes, it has failed for good. One object belongs to one rank; one thread at a time.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "transport/ip/ip.hpp"
#include "transport/remote_memory.hpp"
#include "transport/tcp/frame.hpp"
#include "transport/tcp/handshake.hpp"
#include "transport/tcp/stream_identity.hpp"
#include "transport/tcp/tags/payload_tag.hpp"

namespace unisono::transport {

class OutgoingStream {
 public:
  enum class State : std::uint8_t { idle, connecting, greeting, open, failed };
  // An epoll descriptor, and what it reports for this stream.
  struct Poller {
    int descriptor = -1;
    std::uint64_t id = 0;
  };

  // `identity` outlives it.
  OutgoingStream(const StreamIdentity& identity, int target, const Endpoint& to, Poller poller)
      : identity_(identity), target_(target), to_(to), poller_(poller) {}

  // Whether a message may begin. If there is no connection, it is begun, unless one has failed
  // shortly before. The end of a connection is known from the poller: look() tells of it.
  bool accepts_message();
  // Only after accepts_message(), and until the transfer with the flag; at most kMostBatchBytes, by
  // one system call. Bytes that the kernel does not take are copied and sent later.
  void write(const Transfer& transfer);
  // The poller has these events of the descriptor.
  void look(std::uint32_t events);
  // Without regard to what is not sent.
  void close();

  State state() const { return state_; }
  bool has_unacknowledged() const;
  std::uint64_t moved() const { return moved_; }  // bytes that the kernel has taken
  // Why it has failed; otherwise why the last connection was not made.
  const std::string& error() const { return error_; }
  // Whether a connection could not be made since the last call.
  bool take_refusal() { return std::exchange(was_refused_, false); }

 private:
  void connect();
  void take_connection();
  void take_challenge();
  void find_end();
  void send_or_keep(std::span<const std::byte> bytes);
  void send_or_keep(std::span<iovec> parts, bool more);
  void keep(std::span<const std::byte> bytes);
  void flush();
  void watch(bool for_writing);
  void break_off(const std::string& why);
  void rest(const std::string& why);

  const StreamIdentity& identity_;
  const int target_;
  const Endpoint to_;
  const Poller poller_;
  State state_ = State::idle;
  base::Descriptor socket_;
  bool watches_writing_ = false;
  HelloBytes hello_{};
  ChallengeBytes challenge_{};
  std::size_t challenge_have_ = 0;
  wire::Key header_key_{};
  std::unique_ptr<PayloadTagger> tagger_;
  std::uint64_t number_ = 0;       // of the next frame
  std::vector<std::byte> unsent_;  // from `unsent_from_` on
  std::size_t unsent_from_ = 0;
  bool message_is_open_ = false;  // the last transfer had no flag
  std::uint64_t moved_ = 0;
  std::int64_t retry_ns_ = 0;  // no connection is begun before
  std::int64_t pause_ns_ = 0;  // between the last two attempts
  bool was_refused_ = false;
  std::string error_;
};

}  // namespace unisono::transport
