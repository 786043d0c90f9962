// SPDX-License-Identifier: BSD-3-Clause
#include "nic/service/client.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <vector>

#include "base/clock.hpp"

namespace unisono::nic {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;

// The daemon answers at once; it waits for the kernel only, when it adds a group.
constexpr timeval kPatience = {10, 0};
constexpr std::size_t kMostDescriptors = 2 + UNISONO_NIC_WAITERS_MAX;

Error nobody_serves(const std::string& path, int error) {
  const bool none = error == ENOENT || error == ECONNREFUSED;
  return {none || error == EACCES ? Code::unsupported : Code::system,
          fmt::format("NIC service at {}: {}{}", path, std::strerror(error),
                      none ? "; start it with `unisonod --interface NAME`" : "")};
}

// Repeats a call that may wait for the daemon, kPatience at most, after a signal. The system does
// not restart such calls; an application's timer may interrupt each.
template <class Call>
auto uninterrupted(const Call& call) -> decltype(call()) {
  const std::int64_t deadline_ns = base::now_ns() + kPatience.tv_sec * base::kSecond;
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
    if (base::now_ns() < deadline_ns) continue;
    errno = EAGAIN;
    return result;
  }
}

// A message of another type than the question asks for.
Error unexpected(const std::string& path, const Message& message) {
  if (const auto* refused = std::get_if<Refused>(&message)) return {refused->code, refused->text};
  return {Code::system,
          fmt::format("NIC service at {}: an answer of kind {}, which was not asked for", path,
                      message.index())};
}

}  // namespace

struct ServiceClient::Answer {
  Message message;
  std::vector<Descriptor> descriptors;
};

namespace {

void take_descriptors(msghdr& header, std::vector<Descriptor>& descriptors) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof descriptor);
      descriptors.emplace_back(descriptor);
    }
  }
}

}  // namespace

base::Result<std::unique_ptr<ServiceClient>> ServiceClient::connect(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Error{Code::argument, fmt::format("NIC service: the path {} is longer than {} bytes",
                                             path, sizeof address.sun_path - 1)};
  }
  path.copy(address.sun_path, path.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return nobody_serves(path, errno);
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  const auto connected = uninterrupted([&] {
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  });
  if (connected != 0) {
    return nobody_serves(path, errno);
  }
  return std::unique_ptr<ServiceClient>(new ServiceClient(path, std::move(socket)));
}

Error ServiceClient::ended(int error) const {
  if (error == EAGAIN || error == EWOULDBLOCK) {
    return {Code::timeout,
            fmt::format("NIC service at {}: no answer within {} s", path_, kPatience.tv_sec)};
  }
  return {Code::system,
          fmt::format("NIC service at {}: unisonod has ended: {}", path_,
                      error == 0 ? "it closed the connection" : std::strerror(error))};
}

base::Result<ServiceClient::Answer> ServiceClient::receive(int flags) {
  std::vector<std::byte> bytes(kLongestMessage);
  iovec part = {bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostDescriptors * sizeof(int))> control = {};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const auto take = [&] { return recvmsg(socket_.get(), &header, flags | MSG_CMSG_CLOEXEC); };
  ssize_t length = uninterrupted(take);
  // The daemon closed without reading a question. The kernel reports that first, and then the
  // daemon's last message.
  if (length < 0 && errno == ECONNRESET) {
    length = uninterrupted(take);
  }
  if (length <= 0) return ended(length == 0 ? 0 : errno);
  Answer answer;
  take_descriptors(header, answer.descriptors);
  bytes.resize(static_cast<std::size_t>(length));
  UNISONO_ASSIGN(answer.message, decode(bytes));
  return answer;
}

base::Result<ServiceClient::Answer> ServiceClient::ask(const Message& question) {
  const std::vector<std::byte> bytes = encode(question);
  const auto sent =
      uninterrupted([&] { return send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); });
  if (sent < 0) {
    const int error = errno;
    // The daemon's last message before it closed can still be read, and explains more.
    const auto last = lost();
    return last ? *last : ended(error);
  }
  return receive(0);
}

base::Result<Served> ServiceClient::describe(const std::string& interface) {
  UNISONO_ASSIGN(const Answer answer, ask(Describe{interface}));
  if (const auto* served = std::get_if<Served>(&answer.message)) return *served;
  return unexpected(path_, answer.message);
}

base::Result<std::unique_ptr<Membership>> ServiceClient::join(const unisono_nic_row& row) {
  return ask_for_group(Join{row}, row);
}

base::Result<std::unique_ptr<Membership>> ServiceClient::share(const unisono_nic_row& row) {
  return ask_for_group(Share{row.id, row.key}, row);
}

base::Result<std::unique_ptr<Membership>> ServiceClient::ask_for_group(const Message& question,
                                                                       const unisono_nic_row& row) {
  UNISONO_ASSIGN(Answer answer, ask(question));
  const auto* joined = std::get_if<Joined>(&answer.message);
  if (joined == nullptr) return unexpected(path_, answer.message);
  if (answer.descriptors.size() != 2 + row.waiters) {
    return Error{Code::system, fmt::format("NIC service at {}: a group with {} descriptors", path_,
                                           answer.descriptors.size())};
  }
  auto membership = std::make_unique<Membership>();
  membership->row = row;
  membership->row.index = joined->index;
  membership->row.interface = joined->interface;
  membership->row.own = joined->own;
  std::vector<Descriptor>& maps = answer.descriptors;
  UNISONO_TRY(membership->mapping.open(membership->row, {maps[0].get(), maps[1].get(), {}}));
  membership->wakes.assign(std::make_move_iterator(maps.begin() + 2),
                           std::make_move_iterator(maps.end()));
  return membership;
}

base::Status ServiceClient::leave(std::uint32_t index) {
  UNISONO_ASSIGN(const Answer answer, ask(Leave{index}));
  if (std::holds_alternative<Left>(answer.message)) return base::success();
  return unexpected(path_, answer.message);
}

base::Result<ServiceStatus> ServiceClient::status() {
  UNISONO_ASSIGN(Answer answer, ask(AskStatus{}));
  if (auto* status = std::get_if<ServiceStatus>(&answer.message)) return std::move(*status);
  return unexpected(path_, answer.message);
}

base::Status ServiceClient::start_trace(std::uint32_t every) {
  UNISONO_ASSIGN(const Answer answer, ask(Trace{every}));
  if (std::holds_alternative<Tracing>(answer.message)) return base::success();
  return unexpected(path_, answer.message);
}

base::Result<Records> ServiceClient::next_records() {
  auto heard = receive(0);
  if (!heard.ok() && heard.error().code == Code::timeout) return Records{};
  if (!heard.ok()) return heard.error();
  if (auto* records = std::get_if<Records>(&heard->message)) return std::move(*records);
  return unexpected(path_, heard->message);
}

std::optional<Error> ServiceClient::lost() {
  char first = 0;
  if (recv(socket_.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN) {
    return std::nullopt;
  }
  const auto heard = receive(MSG_DONTWAIT);
  return heard.ok() ? unexpected(path_, heard->message) : heard.error();
}

}  // namespace unisono::nic
