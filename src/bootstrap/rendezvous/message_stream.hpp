// SPDX-License-Identifier: BSD-3-Clause
// MessageStream: messages of the rendezvous on a stream socket. Sends frames, perhaps with a
// descriptor attached, and receives whole messages until a deadline. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "bootstrap/rendezvous/message.hpp"

namespace unisono::bootstrap {

// Never waits; false unless the whole frame was sent. The largest frame is far below the size of a
// socket's buffer, so a peer whose buffer is full has not read for long. `attached`: a descriptor
// or -1.
bool send_frame(const base::Descriptor& socket, std::string_view frame, int attached = -1);

// At most one descriptor arrives with the messages.
class MessageStream {
 public:
  explicit MessageStream(base::Descriptor socket) : socket_(std::move(socket)) {}

  struct Received {
    Message message;
    std::string frame;
  };
  // nullopt: the deadline has passed, or the peer has closed the connection (closed() tells which).
  // Errors: argument (no message of this version), resources (no descriptor is free for the
  // attached one), system.
  base::Result<std::optional<Received>> receive(std::int64_t deadline_ns);
  base::Status send(std::string_view frame);
  bool closed() const { return closed_; }
  const base::Descriptor& socket() const { return socket_; }
  base::Descriptor take_socket() { return std::move(socket_); }
  base::Descriptor take_attached() { return std::move(attached_); }

 private:
  base::Status read_some();

  base::Descriptor socket_;
  base::Descriptor attached_;
  std::string received_;
  bool closed_ = false;
};

}  // namespace unisono::bootstrap
