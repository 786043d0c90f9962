// SPDX-License-Identifier: BSD-3-Clause
#include "group/bootstrap/reception.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/log.hpp"
#include "group/bootstrap/line.hpp"

namespace unisono::group {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;
using base::Status;

// Connections beyond the ranks' own that may be open and have not said who they are; the oldest has
// to go when one more comes.
constexpr std::size_t kMostUnknown = 64;
// In epoll's data: numbers from here on are listeners.
constexpr std::uint64_t kListeners = std::uint64_t{1} << 63;

Status tell_epoll(int poller, int operation, int descriptor, std::uint64_t number, bool reading) {
  epoll_event event{};
  if (reading) event.events = EPOLLIN;
  event.data.u64 = number;
  if (epoll_ctl(poller, operation, descriptor, &event) != 0) {
    return system_error("epoll_ctl", errno);
  }
  return base::success();
}

}  // namespace

Reception::Reception(const wire::Key& key, int ranks)
    : key_(key),
      most_unknown_(static_cast<std::size_t>(ranks) + kMostUnknown),
      limit_(most_unknown_) {}

Result<std::unique_ptr<Reception>> Reception::open(const wire::Key& key, int ranks) {
  std::unique_ptr<Reception> reception(new Reception(key, ranks));
  reception->poller_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!reception->poller_.valid()) return system_error("epoll_create1", errno);
  return reception;
}

Status Reception::listen(Address& address) {
  UNISONO_ASSIGN(Descriptor socket, listen_at(address));
  return listen(std::move(socket), address.kind == Address::Kind::unix_name);
}

Status Reception::listen(Descriptor listening, bool local) {
  UNISONO_TRY(tell_epoll(poller_.get(), EPOLL_CTL_ADD, listening.get(),
                         kListeners + listeners_.size(), true));
  listeners_.push_back({std::move(listening), local});
  return base::success();
}

Result<std::vector<Reception::Event>> Reception::step() {
  std::array<epoll_event, 64> ready{};
  const int count = epoll_wait(poller_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  // Who is new comes first: nobody has to make room for them whose Hello is being reported.
  for (int i = 0; i < count; ++i) {
    const std::uint64_t number = ready[static_cast<std::size_t>(i)].data.u64;
    if (number >= kListeners) UNISONO_TRY(accept_all(number - kListeners));
  }
  std::vector<Event> events;
  for (int i = 0; i < count; ++i) {
    // By value: the kernel's structure is packed, and no reference may be bound to its parts.
    const std::uint64_t number = ready[static_cast<std::size_t>(i)].data.u64;
    const auto found = visitors_.find(number);
    if (found != visitors_.end()) read_from(found, events);
  }
  return events;
}

Status Reception::accept_all(std::size_t listener) {
  const auto& [listening, local] = listeners_[listener];
  while (!paused_) {
    Descriptor socket(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const int failure = errno;
    if (socket.valid()) {
      limit_.keep_room_beyond(socket.get());
      UNISONO_TRY(greet(std::move(socket), local));
      continue;
    }
    if (failure == EINTR || failure == ECONNABORTED) continue;
    if (failure == EMFILE && limit_.raise()) continue;
    if (failure == EMFILE || failure == ENFILE) return pause_or_fail();
    break;
  }
  return base::success();
}

// Those who have not said Hello yet may soon be sent elsewhere.
Status Reception::pause_or_fail() {
  pause(true);  // the listeners would stay readable for ever
  if (visitors_.size() > kept_) return base::success();
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return Error{Code::resources,
               fmt::format("the rendezvous has no file descriptors left for more ranks; raise the "
                           "limit (ulimit -n), which is {} at most for this process",
                           limit.rlim_max)};
}

void Reception::pause(bool paused) {
  if (paused_ == paused) return;
  paused_ = paused;
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    static_cast<void>(tell_epoll(poller_.get(), EPOLL_CTL_MOD, listeners_[i].socket.get(),
                                 kListeners + i, !paused));
  }
}

Status Reception::greet(Descriptor socket, bool local) {
  Visitor visitor;
  visitor.local = local;
  if (local) {
    const Result<Peer> peer = peer_of(socket);
    if (!peer.ok() || peer->uid != geteuid()) {
      ++strangers_;
      return base::success();
    }
    visitor.peer = *peer;
  }
  UNISONO_ASSIGN(visitor.nonce, random_nonce());
  make_room();
  const Number number = ++greeted_;
  if (!send_frame(socket, encode(Challenge{visitor.nonce})) ||
      !tell_epoll(poller_.get(), EPOLL_CTL_ADD, socket.get(), number, true).ok()) {
    return base::success();
  }
  visitor.socket = std::move(socket);
  visitors_.emplace(number, std::move(visitor));
  return base::success();
}

void Reception::make_room() {
  if (visitors_.size() - kept_ < most_unknown_) return;
  auto oldest = visitors_.begin();
  while (oldest->second.kept) ++oldest;
  ++strangers_;
  erase(oldest);
}

void Reception::read_from(Visitors::iterator visitor, std::vector<Event>& events) {
  std::array<char, kHelloFrameBytes> buffer{};
  std::string& received = visitor->second.received;
  const ssize_t count =
      recv(visitor->second.socket.get(), buffer.data(), buffer.size() - received.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return lose(visitor, events);
  received.append(buffer.data(), static_cast<std::size_t>(count));
  take_messages(visitor, events);
}

void Reception::take_messages(Visitors::iterator visitor, std::vector<Event>& events) {
  Visitor& from = visitor->second;
  for (;;) {
    Result<std::optional<Decoded>> decoded = decode(from.received);
    if (!decoded.ok()) {
      base::log(base::LogLevel::info, "rendezvous", "dropped a connection: {}",
                decoded.error().message);
      return lose(visitor, events);
    }
    if (!decoded->has_value()) return;
    auto& [message, bytes] = **decoded;
    const bool of_rank = std::holds_alternative<Hello>(message) ||
                         (from.kept && std::holds_alternative<Objection>(message));
    if (!of_rank) return lose(visitor, events);
    if (!signature_is_right(std::string_view(from.received).substr(0, bytes), key_, from.nonce)) {
      send_frame(from.socket, encode(Refused{Code::argument,
                                             "the job key does not fit: UNISONO_JOB_KEY must be "
                                             "the same for all ranks of a job",
                                             {}}));
      return lose(visitor, events);
    }
    from.received.erase(0, bytes);
    events.push_back({visitor->first, std::move(message)});
  }
}

void Reception::lose(Visitors::iterator visitor, std::vector<Event>& events) {
  if (visitor->second.kept) {
    events.push_back({visitor->first, std::nullopt});
  } else {
    ++strangers_;
  }
  erase(visitor);
}

void Reception::erase(Visitors::iterator visitor) {
  if (visitor->second.kept) --kept_;
  visitors_.erase(visitor);
  pause(false);
}

Reception::Visitor* Reception::find(Number visitor) {
  const auto found = visitors_.find(visitor);
  return found == visitors_.end() ? nullptr : &found->second;
}

void Reception::keep(Number visitor) {
  Visitor* const found = find(visitor);
  if (found == nullptr || found->kept) return;
  found->kept = true;
  ++kept_;
  // If nobody else is about to go, the next accept() says so.
  if (visitors_.size() == kept_) pause(false);
}

bool Reception::send(Number visitor, std::string_view frame, int attached) {
  const Visitor* const found = find(visitor);
  return found != nullptr && send_frame(found->socket, frame, attached);
}

void Reception::refuse(Number visitor, const Error& error) {
  send(visitor, encode(Refused{error.code, error.message, {}}));
  close(visitor);
}

void Reception::refuse_kept(const Error& error) {
  std::vector<Number> kept;
  for (const auto& [number, visitor] : visitors_) {
    if (visitor.kept) kept.push_back(number);
  }
  for (const Number number : kept) refuse(number, error);
}

void Reception::close(Number visitor) {
  if (const auto found = visitors_.find(visitor); found != visitors_.end()) erase(found);
}

std::vector<Descriptor> Reception::release_kept() {
  std::vector<Descriptor> result;
  for (auto& [number, visitor] : visitors_) {
    if (visitor.kept) result.push_back(std::move(visitor.socket));
  }
  visitors_.clear();
  kept_ = 0;
  limit_.leave_open(result.size());
  return result;
}

}  // namespace unisono::group
