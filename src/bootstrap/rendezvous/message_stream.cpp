// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/message_stream.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"

namespace unisono::bootstrap {

using base::Result;
using base::Status;

bool send_frame(const base::Descriptor& socket, std::string_view frame, int attached) {
  iovec part{const_cast<char*>(frame.data()), frame.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (attached >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &attached, sizeof(int));
  }
  const ssize_t sent = sendmsg(socket.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent == static_cast<ssize_t>(frame.size());
}

Result<std::optional<MessageStream::Received>> MessageStream::receive(std::int64_t deadline_ns) {
  for (;;) {
    UNISONO_ASSIGN(std::optional<Decoded> decoded, decode(received_));
    if (decoded) {
      Received received{std::move(decoded->message), received_.substr(0, decoded->frame_bytes)};
      received_.erase(0, decoded->frame_bytes);
      return std::optional(std::move(received));
    }
    if (closed_) return std::optional<Received>();
    pollfd waiting{socket_.get(), POLLIN, 0};
    const int ready = poll(&waiting, 1, base::poll_timeout_ms(deadline_ns));
    if (ready == 0 && base::now_ns() >= deadline_ns) return std::optional<Received>();
    if (ready < 0 && errno != EINTR) return base::system_error("poll", errno);
    if (ready > 0) UNISONO_TRY(read_some());
  }
}

Status MessageStream::read_some() {
  std::array<char, 4096> buffer{};
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t count = recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return base::success();
  if (count <= 0) {
    closed_ = true;
    return base::success();
  }
  for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    int number = -1;
    std::memcpy(&number, CMSG_DATA(each), sizeof(number));
    attached_.reset(number);
  }
  if ((header.msg_flags & MSG_CTRUNC) != 0) {
    return base::Error{base::Code::resources,
                       "no file descriptor is free for the job's memory file; raise the limit "
                       "(ulimit -n)"};
  }
  received_.append(buffer.data(), static_cast<std::size_t>(count));
  return base::success();
}

Status MessageStream::send(std::string_view frame) {
  const ssize_t sent = ::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(frame.size())) return base::success();
  // receive() may still have a message that says why the peer has closed.
  if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return base::success();
  return base::system_error("cannot write to the rendezvous", sent < 0 ? errno : EAGAIN);
}

}  // namespace unisono::bootstrap
