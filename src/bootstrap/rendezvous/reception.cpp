// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/reception.hpp"

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
#include "bootstrap/rendezvous/line.hpp"
#include "transport/udp/ip.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;
using base::Status;

// Connections beyond the ranks' own that may be open and have not said who they are.
constexpr std::size_t kMostUnknown = 64;
// New connections in one step: whoever connects without end must not keep the owner from its
// deadline, nor those who have come from being heard.
constexpr int kMostAcceptedInAStep = 64;
// When descriptors have run out, time to say Hello. A rank needs a round trip, and may come again.
constexpr std::int64_t kPatienceNs = 2 * base::kSecond;
// In epoll's data: numbers from here on are listeners; the one before is the timer.
constexpr std::uint64_t kListeners = std::uint64_t{1} << 63;
constexpr std::uint64_t kPatience = kListeners - 1;

Status tell_epoll(int poller, int operation, int descriptor, std::uint64_t number, bool reading) {
  epoll_event event{};
  if (reading) event.events = EPOLLIN;
  event.data.u64 = number;
  if (epoll_ctl(poller, operation, descriptor, &event) != 0) {
    return system_error("epoll_ctl", errno);
  }
  return base::success();
}

// Whoever has an address of IPv6 usually has a network of 64 bits.
std::string source_text(const sockaddr_storage& peer) {
  transport::IpAddress address = transport::endpoint_of(peer).address;
  constexpr std::size_t kNetworkBytes = 8;
  if (address.family == transport::Family::v6) {
    std::fill(address.bytes.begin() + kNetworkBytes, address.bytes.end(), std::uint8_t{0});
  }
  return transport::ip_text(address);
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
  reception->patience_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!reception->patience_.valid()) return system_error("timerfd_create", errno);
  UNISONO_TRY(tell_epoll(reception->poller_.get(), EPOLL_CTL_ADD, reception->patience_.get(),
                         kPatience, true));
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
  std::vector<Event> events;
  // By value: the kernel's structure is packed, and no reference may be bound to its parts.
  for (int i = 0; i < count; ++i) {
    const std::uint64_t number = ready[static_cast<std::size_t>(i)].data.u64;
    const auto found = visitors_.find(number);
    if (found != visitors_.end()) read_from(found, events);
  }
  for (int i = 0; i < count; ++i) {
    const std::uint64_t number = ready[static_cast<std::size_t>(i)].data.u64;
    if (number == kPatience) evict_silent(events);
    if (number >= kListeners) UNISONO_TRY(accept_some(number - kListeners, events));
  }
  return events;
}

// An error loses no Hello: whoever has said one is about to go, so that there is none.
Status Reception::accept_some(std::size_t listener, std::vector<Event>& events) {
  const auto& [listening, local] = listeners_[listener];
  for (int i = 0; i < kMostAcceptedInAStep && !paused_; ++i) {
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    Visitor visitor;
    visitor.local = local;
    visitor.socket.reset(accept4(listening.get(), reinterpret_cast<sockaddr*>(&peer), &length,
                                 SOCK_CLOEXEC | SOCK_NONBLOCK));
    const int failure = errno;
    if (visitor.socket.valid()) {
      limit_.keep_room_beyond(visitor.socket.get());
      if (!local) visitor.source = source_text(peer);
      UNISONO_TRY(greet(std::move(visitor), events));
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
        continue;  // of a connection that has gone again, or of the network: accept(2)
    }
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
  set_patience(paused);
}

void Reception::set_patience(bool running) {
  itimerspec time{};
  if (running) time.it_value.tv_sec = kPatienceNs / base::kSecond;
  timerfd_settime(patience_.get(), 0, &time, nullptr);
}

Status Reception::greet(Visitor visitor, std::vector<Event>& events) {
  if (visitor.local) {
    const Result<Peer> peer = peer_of(visitor.socket);
    if (!peer.ok() || peer->uid != geteuid()) {
      ++strangers_;
      return base::success();
    }
    visitor.peer = *peer;
    visitor.source = fmt::format("pid {}", peer->pid);
  }
  UNISONO_ASSIGN(visitor.nonce, random_nonce());
  visitor.since_ns = base::now_ns();
  make_room(events);
  const Number number = ++greeted_;
  if (!send_frame(visitor.socket, encode(Challenge{visitor.nonce})) ||
      !tell_epoll(poller_.get(), EPOLL_CTL_ADD, visitor.socket.get(), number, true).ok()) {
    return base::success();
  }
  visitors_.emplace(number, std::move(visitor));
  ++unknown_;
  return base::success();
}

void Reception::make_room(std::vector<Event>& events) {
  while (unknown_ >= most_unknown_) {
    const auto visitor = most_dispensable();
    if (visitor == visitors_.end()) return;
    evict(visitor, events);
  }
}

Reception::Visitors::iterator Reception::most_dispensable() {
  std::map<std::string_view, std::size_t> counts;
  for (const auto& [number, visitor] : visitors_) {
    if (visitor.hello == Nonce{}) ++counts[visitor.source];
  }
  auto result = visitors_.end();
  std::size_t most = 0;
  for (auto each = visitors_.begin(); each != visitors_.end(); ++each) {
    if (each->second.hello != Nonce{}) continue;
    const std::size_t count = counts[each->second.source];
    if (count <= most) continue;
    most = count;
    result = each;
  }
  return result;
}

// Unless its Hello has come meanwhile.
void Reception::evict(Visitors::iterator visitor, std::vector<Event>& events) {
  const Number number = visitor->first;
  read_from(visitor, events);
  const auto still = visitors_.find(number);
  if (still == visitors_.end() || still->second.hello != Nonce{}) return;
  base::log(base::LogLevel::info, "rendezvous",
            "dropped a connection of {} that has not said who "
            "it is: there is no room for more",
            still->second.source);
  ++strangers_;
  erase(still);
}

void Reception::evict_silent(std::vector<Event>& events) {
  std::uint64_t expirations = 0;
  if (read(patience_.get(), &expirations, sizeof(expirations)) < 0) return;
  const std::int64_t before_ns = base::now_ns() - kPatienceNs;
  std::vector<Number> silent;
  for (const auto& [number, visitor] : visitors_) {
    if (visitor.hello == Nonce{} && visitor.since_ns <= before_ns) silent.push_back(number);
  }
  for (const Number number : silent) evict(visitors_.find(number), events);
  if (paused_) set_patience(true);  // all of them are newer
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
    if (const Hello* hello = std::get_if<Hello>(&message);
        hello != nullptr && from.hello == Nonce{}) {
      from.hello = hello->nonce;
      --unknown_;
    }
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
  if (visitor->second.hello == Nonce{}) --unknown_;
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

bool Reception::send_refused(Number visitor, const Refused& refused) {
  const Visitor* const found = find(visitor);
  if (found == nullptr) return false;
  std::string frame = encode(refused);
  sign(frame, key_, found->hello);
  return send_frame(found->socket, frame);
}

void Reception::refuse(Number visitor, const Error& error) {
  send_refused(visitor, {error.code, error.message, {}});
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
  unknown_ = 0;
  limit_.leave_open(result.size());
  return result;
}

}  // namespace unisono::bootstrap
