// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/acceptor.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "bootstrap/rendezvous/message_stream.hpp"
#include "transport/ip/ip.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;
using base::Status;

// Beside as many connections as ranks, so many may be open without a Hello.
constexpr std::size_t kMostUnidentified = 64;
// New connections in one step: a peer that connects without end must neither delay the owner's
// deadline nor the reading of other connections.
constexpr int kMostAcceptedInAStep = 64;
// The time to send a Hello when descriptors have run out. A rank needs a round trip, and may
// connect again.
constexpr std::int64_t kSilenceLimitNs = 2 * base::kSecond;
// In epoll's data: numbers from here on are listeners, the one before is the timer.
constexpr std::uint64_t kListeners = std::uint64_t{1} << 63;
constexpr std::uint64_t kSilenceTimer = kListeners - 1;

Status tell_epoll(int poller, int operation, int descriptor, std::uint64_t number, bool reading) {
  epoll_event event{};
  if (reading) event.events = EPOLLIN;
  event.data.u64 = number;
  if (epoll_ctl(poller, operation, descriptor, &event) != 0) {
    return base::system_error("epoll_ctl", errno);
  }
  return base::success();
}

// A user with an IPv6 address usually has a whole network of 64 bits.
std::string source_text(const sockaddr_storage& peer) {
  transport::IpAddress address = transport::endpoint_of(peer).address;
  constexpr std::size_t kNetworkBytes = 8;
  if (address.family == transport::Family::v6) {
    std::fill(address.bytes.begin() + kNetworkBytes, address.bytes.end(), std::uint8_t{0});
  }
  return transport::ip_text(address);
}

}  // namespace

Acceptor::Acceptor(const wire::Key& key, int ranks)
    : key_(key),
      most_unidentified_(static_cast<std::size_t>(ranks) + kMostUnidentified),
      limit_(most_unidentified_) {}

Result<std::unique_ptr<Acceptor>> Acceptor::open(const wire::Key& key, int ranks) {
  std::unique_ptr<Acceptor> acceptor(new Acceptor(key, ranks));
  acceptor->poller_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!acceptor->poller_.valid()) return base::system_error("epoll_create1", errno);
  acceptor->silence_timer_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!acceptor->silence_timer_.valid()) return base::system_error("timerfd_create", errno);
  UNISONO_TRY(tell_epoll(acceptor->poller_.get(), EPOLL_CTL_ADD, acceptor->silence_timer_.get(),
                         kSilenceTimer, true));
  return acceptor;
}

Status Acceptor::listen(Address& address) {
  UNISONO_ASSIGN(Descriptor socket, listen_at(address));
  return listen(std::move(socket), address.kind == Address::Kind::unix_name);
}

Status Acceptor::listen(Descriptor listening, bool local) {
  UNISONO_TRY(tell_epoll(poller_.get(), EPOLL_CTL_ADD, listening.get(),
                         kListeners + listeners_.size(), true));
  listeners_.push_back({std::move(listening), local});
  return base::success();
}

Result<std::vector<Acceptor::Event>> Acceptor::step() {
  std::array<epoll_event, 64> ready{};
  const int count = epoll_wait(poller_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  std::vector<Event> events;
  // By value: the kernel's structure is packed, so references to its members are not allowed.
  for (int i = 0; i < count; ++i) {
    const std::uint64_t number = ready[static_cast<std::size_t>(i)].data.u64;
    const auto found = connections_.find(number);
    if (found != connections_.end()) read_from(found, events);
  }
  for (int i = 0; i < count; ++i) {
    const std::uint64_t number = ready[static_cast<std::size_t>(i)].data.u64;
    if (number == kSilenceTimer) drop_silent(events);
    // A child that the application forked may keep a closed listener open.
    if (number >= kListeners && number - kListeners < listeners_.size()) {
      UNISONO_TRY(accept_some(number - kListeners, events));
    }
  }
  return events;
}

// At an error there is no unread Hello: it occurs only if no connection without a Hello is open.
Status Acceptor::accept_some(std::size_t listener, std::vector<Event>& events) {
  const auto& [listening, local] = listeners_[listener];
  for (int i = 0; i < kMostAcceptedInAStep && !paused_; ++i) {
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    Connection connection;
    connection.local = local;
    connection.socket.reset(accept4(listening.get(), reinterpret_cast<sockaddr*>(&peer), &length,
                                    SOCK_CLOEXEC | SOCK_NONBLOCK));
    const int failure = errno;
    if (connection.socket.valid()) {
      limit_.keep_room_beyond(connection.socket.get());
      if (!local) connection.source = source_text(peer);
      UNISONO_TRY(send_challenge(std::move(connection), events));
      continue;
    }
    switch (failure) {
      case EAGAIN:
        return base::success();
      case EMFILE:
        if (limit_.raise()) continue;
        return pause_or_fail();
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        return pause_or_fail();
      default:
        continue;  // the connection has ended already, or a network error: accept(2)
    }
  }
  return base::success();
}

// Connections that are not admitted will free their descriptors soon.
Status Acceptor::pause_or_fail() {
  pause(true);  // otherwise the listeners would stay readable
  if (connections_.size() > admitted_) return base::success();
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return Error{Code::resources,
               fmt::format("the rendezvous has no file descriptors left for more ranks; raise the "
                           "limit (ulimit -n), which is {} at most for this process",
                           limit.rlim_max)};
}

void Acceptor::pause(bool paused) {
  if (paused_ == paused) return;
  paused_ = paused;
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    static_cast<void>(tell_epoll(poller_.get(), EPOLL_CTL_MOD, listeners_[i].socket.get(),
                                 kListeners + i, !paused));
  }
  arm_silence_timer(paused);
}

void Acceptor::arm_silence_timer(bool running) {
  itimerspec time{};
  if (running) time.it_value.tv_sec = kSilenceLimitNs / base::kSecond;
  timerfd_settime(silence_timer_.get(), 0, &time, nullptr);
}

Status Acceptor::send_challenge(Connection connection, std::vector<Event>& events) {
  if (connection.local) {
    const Result<Peer> peer = peer_of(connection.socket);
    if (!peer.ok() || peer->uid != geteuid()) {
      ++rejected_;
      return base::success();
    }
    connection.peer = *peer;
    connection.source = fmt::format("pid {}", peer->pid);
  }
  UNISONO_ASSIGN(connection.nonce, random_nonce());
  connection.since_ns = base::now_ns();
  make_room(events);
  const ConnectionId number = ++last_id_;
  if (!send_frame(connection.socket, encode(Challenge{connection.nonce})) ||
      !tell_epoll(poller_.get(), EPOLL_CTL_ADD, connection.socket.get(), number, true).ok()) {
    return base::success();
  }
  connections_.emplace(number, std::move(connection));
  ++unidentified_;
  return base::success();
}

void Acceptor::make_room(std::vector<Event>& events) {
  while (unidentified_ >= most_unidentified_) {
    const auto connection = connection_to_drop();
    if (connection == connections_.end()) return;
    drop(connection, events);
  }
}

Acceptor::Connections::iterator Acceptor::connection_to_drop() {
  std::map<std::string_view, std::size_t> counts;
  for (const auto& [number, connection] : connections_) {
    if (connection.hello == Nonce{}) ++counts[connection.source];
  }
  auto result = connections_.end();
  std::size_t most = 0;
  for (auto each = connections_.begin(); each != connections_.end(); ++each) {
    if (each->second.hello != Nonce{}) continue;
    const std::size_t count = counts[each->second.source];
    if (count <= most) continue;
    most = count;
    result = each;
  }
  return result;
}

// Unless its Hello has arrived meanwhile.
void Acceptor::drop(Connections::iterator connection, std::vector<Event>& events) {
  const ConnectionId number = connection->first;
  read_from(connection, events);
  const auto still = connections_.find(number);
  if (still == connections_.end() || still->second.hello != Nonce{}) return;
  base::log(base::LogLevel::info, "rendezvous",
            "dropped a connection of {} that has sent no Hello: too many of them are open",
            still->second.source);
  ++rejected_;
  erase(still);
}

void Acceptor::drop_silent(std::vector<Event>& events) {
  std::uint64_t expirations = 0;
  if (read(silence_timer_.get(), &expirations, sizeof(expirations)) < 0) return;
  const std::int64_t before_ns = base::now_ns() - kSilenceLimitNs;
  std::vector<ConnectionId> silent;
  for (const auto& [number, connection] : connections_) {
    if (connection.hello == Nonce{} && connection.since_ns <= before_ns) silent.push_back(number);
  }
  for (const ConnectionId number : silent) drop(connections_.find(number), events);
  if (paused_) arm_silence_timer(true);  // the others are newer
}

void Acceptor::read_from(Connections::iterator connection, std::vector<Event>& events) {
  std::array<char, kHelloFrameBytes> buffer{};
  std::string& received = connection->second.received;
  const ssize_t count =
      recv(connection->second.socket.get(), buffer.data(), buffer.size() - received.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return end_connection(connection, events);
  received.append(buffer.data(), static_cast<std::size_t>(count));
  take_messages(connection, events);
}

void Acceptor::take_messages(Connections::iterator connection, std::vector<Event>& events) {
  Connection& from = connection->second;
  for (;;) {
    Result<std::optional<Decoded>> decoded = decode(from.received);
    if (!decoded.ok()) {
      base::log(base::LogLevel::info, "rendezvous", "dropped a connection: {}",
                decoded.error().message);
      return end_connection(connection, events);
    }
    if (!decoded->has_value()) return;
    auto& [message, bytes] = **decoded;
    const bool is_allowed = std::holds_alternative<Hello>(message) ||
                            (from.admitted && std::holds_alternative<Withdrawal>(message));
    if (!is_allowed) return end_connection(connection, events);
    if (!signature_is_right(std::string_view(from.received).substr(0, bytes), key_, from.nonce)) {
      send_frame(from.socket, encode(Refused{Code::argument,
                                             "the job key does not fit: UNISONO_JOB_KEY must be "
                                             "the same for all ranks of a job",
                                             {}}));
      source_of_wrong_key_ = from.source;
      return end_connection(connection, events);
    }
    from.received.erase(0, bytes);
    if (const Hello* hello = std::get_if<Hello>(&message);
        hello != nullptr && from.hello == Nonce{}) {
      from.hello = hello->nonce;
      --unidentified_;
    }
    events.push_back({connection->first, std::move(message)});
  }
}

void Acceptor::end_connection(Connections::iterator connection, std::vector<Event>& events) {
  if (connection->second.admitted) {
    events.push_back({connection->first, std::nullopt});
  } else {
    ++rejected_;
  }
  erase(connection);
}

std::string Acceptor::note_of_wrong_key() const {
  if (source_of_wrong_key_.empty()) return {};
  return fmt::format(
      "; a process ({}) was refused for another job key: UNISONO_JOB_KEY must be the same for all "
      "ranks of a job",
      source_of_wrong_key_);
}

void Acceptor::erase(Connections::iterator connection) {
  if (connection->second.admitted) --admitted_;
  if (connection->second.hello == Nonce{}) --unidentified_;
  connections_.erase(connection);
  pause(false);
}

Acceptor::Connection* Acceptor::find(ConnectionId connection) {
  const auto found = connections_.find(connection);
  return found == connections_.end() ? nullptr : &found->second;
}

void Acceptor::admit(ConnectionId connection) {
  Connection* const found = find(connection);
  if (found == nullptr || found->admitted) return;
  found->admitted = true;
  ++admitted_;
  // If no other connection is about to end, the next accept() fails, and its error says so.
  if (connections_.size() == admitted_) pause(false);
}

bool Acceptor::send(ConnectionId connection, std::string_view frame, int attached) {
  const Connection* const found = find(connection);
  return found != nullptr && send_frame(found->socket, frame, attached);
}

bool Acceptor::send_refused(ConnectionId connection, const Refused& refused) {
  const Connection* const found = find(connection);
  if (found == nullptr) return false;
  std::string frame = encode(refused);
  sign(frame, key_, found->hello);
  return send_frame(found->socket, frame);
}

void Acceptor::refuse(ConnectionId connection, const Error& error) {
  send_refused(connection, {error.code, error.message, {}});
  close(connection);
}

void Acceptor::refuse_admitted(const Error& error) {
  std::vector<ConnectionId> admitted;
  for (const auto& [number, connection] : connections_) {
    if (connection.admitted) admitted.push_back(number);
  }
  for (const ConnectionId number : admitted) refuse(number, error);
}

void Acceptor::close(ConnectionId connection) {
  if (const auto found = connections_.find(connection); found != connections_.end()) erase(found);
}

std::vector<Descriptor> Acceptor::release_admitted() {
  std::vector<Descriptor> result;
  for (auto& [number, connection] : connections_) {
    if (connection.admitted) result.push_back(std::move(connection.socket));
  }
  connections_.clear();
  admitted_ = 0;
  unidentified_ = 0;
  limit_.leave_open(result.size());
  return result;
}

}  // namespace unisono::bootstrap
