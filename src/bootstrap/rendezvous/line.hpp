// SPDX-License-Identifier: BSD-3-Clause
// Bootstrap messages on a stream socket: sending a frame, perhaps with a descriptor attached, and
// receiving whole messages until a deadline. One thread at a time.
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

// Never waits; false unless the whole frame went out. A peer that cannot take a frame at once is
// beyond help, since the largest is far below a socket's buffer. `attached` is a descriptor or -1.
bool send_frame(const base::Descriptor& socket, std::string_view frame, int attached = -1);

// A connection on which whole messages arrive, at most one descriptor with them.
class Line {
 public:
  explicit Line(base::Descriptor socket) : socket_(std::move(socket)) {}

  struct Arrival {
    Message message;
    std::string frame;
  };
  // Empty: the deadline passed, or the other side closed the connection (closed() tells).
  // A message that is incomplete at the deadline is not waited for. Errors: argument (no message of
  // this version), resources (no descriptor is free for the one that came with it), system.
  base::Result<std::optional<Arrival>> receive(std::int64_t deadline_ns);
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
