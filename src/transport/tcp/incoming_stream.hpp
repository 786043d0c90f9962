// SPDX-License-Identifier: BSD-3-Clause
// IncomingStream: a connection that another process has made to this rank. It becomes a stream of
// another rank when that has proved the job's key; until then nothing is answered to any but a
// genuine Hello. Payloads are read straight to their place in the region, or where the receiver
// expects them (StreamIdentity::landings). A flag is raised when its payload has the right tag. One
// object belongs to one rank; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/descriptor.hpp"
#include "transport/tcp/frame.hpp"
#include "transport/tcp/handshake.hpp"
#include "transport/tcp/stream_identity.hpp"
#include "transport/tcp/stream_socket.hpp"
#include "transport/tcp/tags/payload_tag.hpp"

namespace unisono::transport {

class IncomingStream {
 public:
  // `identity` outlives it.
  IncomingStream(base::Descriptor socket, const StreamIdentity& identity)
      : identity_(identity), socket_(std::move(socket)) {}

  enum class State : std::uint8_t {
    greeting,
    open,
    ended,     // between two messages
    rejected,  // it was never a stream of another rank
    broken,    // amid a message, or with bytes that are not the rank's: error() says how
  };
  // Reads what has come, but not for ever; after a flag it returns at once. Never waits.
  State read();

  State state() const { return state_; }
  int descriptor() const { return socket_.get(); }
  // Before it ends: that poller has it no more.
  void leave(int poller) const { leave_poller(poller, socket_); }
  int rank() const { return rank_; }  // -1: not known yet
  std::uint64_t flags() const { return flags_; }
  std::uint64_t bytes() const { return bytes_; }
  const std::string& error() const { return error_; }

 private:
  enum class Next : std::uint8_t { hello, answer, header };

  std::size_t next_bytes() const;
  bool take(std::size_t count);
  bool take_control();
  bool take_hello();
  bool take_answer();
  bool take_header();
  void begin_payload();
  std::byte* destination() const;
  bool finish_frame();
  void end(bool by_error, int error_number);
  bool reject();
  bool is_amid_message() const;

  const StreamIdentity& identity_;
  base::Descriptor socket_;
  State state_ = State::greeting;
  Next next_ = Next::hello;
  int rank_ = -1;
  std::array<std::byte, kFrameHeaderBytes> control_{};  // what comes next, but for payloads
  std::size_t control_have_ = 0;
  HelloBytes hello_{};
  StreamSession session_;
  std::unique_ptr<PayloadTagger> tagger_;
  StreamFrame frame_;             // whose payload comes
  std::size_t payload_have_ = 0;  // of frame_.bytes
  bool lands_ = false;            // the payload does not go to the region
  std::uint64_t number_ = 0;      // of the next frame
  bool message_is_open_ = false;  // the last frame had no flag
  std::uint64_t flags_ = 0;
  std::uint64_t bytes_ = 0;
  std::string error_;
};

}  // namespace unisono::transport
