// SPDX-License-Identifier: BSD-3-Clause
#include "group/bootstrap/rendezvous.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "group/bootstrap/line.hpp"
#include "group/bootstrap/memory.hpp"

namespace unisono::group {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::LogLevel;
using base::Result;
using base::Status;

constexpr std::string_view kComponent = "rendezvous";
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
// Connections beyond the ranks' own that may be open and have not said who they are; the oldest has
// to go when one more comes.
constexpr std::size_t kMostUnknown = 64;
constexpr std::size_t kMostNotesBytes = 1024;
// The longest Welcome has 115 KiB; a TCP socket begins with room for less, and may not wait.
constexpr int kWelcomeBufferBytes = 256 << 10;

void make_room_for_welcome(const Descriptor& socket) {
  // The system's limit stands; all but the largest jobs fit in any case.
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kWelcomeBufferBytes,
             sizeof(kWelcomeBufferBytes));
}

// "1, 3, 5-9"
std::string rank_list(const std::vector<int>& ranks) {
  std::string result;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    result += fmt::format("{}{}", result.empty() ? "" : ", ", ranks[i]);
    if (last > i) result += fmt::format("{}{}", last == i + 1 ? ", " : "-", ranks[last]);
    i = last + 1;
  }
  return result;
}

}  // namespace

Result<std::unique_ptr<Rendezvous>> Rendezvous::open(const Options& options, Descriptor listener) {
  if (options.ranks < 1 || options.ranks > static_cast<int>(kMostRanks)) {
    return Error{Code::argument, fmt::format("a job of {} ranks is not possible: from 1 to {} are",
                                             options.ranks, kMostRanks)};
  }
  if (options.address.kind == Address::Kind::tcp && options.key.empty()) {
    return Error{Code::argument, "a rendezvous at a tcp address needs a job key (UNISONO_JOB_KEY)"};
  }
  std::unique_ptr<Rendezvous> server(new Rendezvous(options));
  server->tcp_listener_ = std::move(listener);
  UNISONO_ASSIGN(server->host_, own_host_id());
  UNISONO_TRY(server->start_listening());
  return server;
}

Rendezvous::Rendezvous(const Options& options)
    : options_(options),
      key_(wire::key_of(options.key)),
      address_(options.address),
      places_(static_cast<std::size_t>(options.ranks)),
      arrivals_(static_cast<std::size_t>(options.ranks)),
      deadline_ns_(kNever) {}

Status Rendezvous::start_listening() {
  poller_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!poller_.valid()) return system_error("epoll_create1", errno);
  const bool tcp = address_.kind == Address::Kind::tcp;
  if (tcp || address_.name.empty()) {
    UNISONO_ASSIGN(unix_address_, random_unix_address());
  } else {
    unix_address_ = address_;
  }
  UNISONO_ASSIGN(listener_, listen_at(unix_address_));
  UNISONO_TRY(watch(listener_));
  if (tcp) {
    if (!tcp_listener_.valid()) {
      UNISONO_ASSIGN(tcp_listener_, listen_at(address_));
    }
    UNISONO_TRY(watch(tcp_listener_));
  } else {
    address_ = unix_address_;
  }
  if (options_.job.empty()) options_.job = unix_address_.name;
  return base::success();
}

Status Rendezvous::watch(const Descriptor& socket) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = socket.get();
  if (epoll_ctl(poller_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) {
    return system_error("epoll_ctl", errno);
  }
  return base::success();
}

std::int64_t Rendezvous::next_deadline_ns() const {
  return state_ == State::gathering ? deadline_ns_ : kNever;
}

Rendezvous::State Rendezvous::step() {
  std::array<epoll_event, 64> events{};
  int ready = 0;
  do {
    ready = epoll_wait(poller_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < ready; ++i) {
      const int number = events[static_cast<std::size_t>(i)].data.fd;
      if (number == listener_.get()) {
        accept_all(listener_, true);
      } else if (number == tcp_listener_.get()) {
        accept_all(tcp_listener_, false);
      } else if (const auto found = connections_.find(number); found != connections_.end()) {
        read_from(found);
      }
    }
  } while (ready == static_cast<int>(events.size()));
  if (state_ == State::gathering && base::now_ns() >= deadline_ns_) {
    fail({Code::timeout, missing_text()});
  }
  return state_;
}

Status Rendezvous::serve(std::int64_t deadline_ns) {
  deadline_ns_ = std::min(deadline_ns_, deadline_ns);
  while (state_ == State::gathering) {
    pollfd waiting{poller_.get(), POLLIN, 0};
    if (poll(&waiting, 1, base::poll_timeout_ms(deadline_ns_)) < 0 && errno != EINTR) {
      return system_error("poll", errno);
    }
    step();
  }
  return state_ == State::started ? base::success() : Status(error_);
}

bool Rendezvous::has_joined(int rank) const {
  return places_[static_cast<std::size_t>(rank)].socket >= 0;
}

void Rendezvous::rank_ended(int rank, std::string_view how) {
  if (state_ != State::gathering) return;
  fail({Code::rank_lost, fmt::format("rank {} {} before all ranks had joined the job",
                                     name_of(static_cast<std::uint32_t>(rank)), how)});
}

std::vector<Descriptor> Rendezvous::release_connections() {
  std::vector<Descriptor> result;
  for (auto& [number, connection] : connections_) {
    if (connection.rank >= 0) result.push_back(std::move(connection.socket));
  }
  connections_.clear();
  return result;
}

void Rendezvous::accept_all(const Descriptor& listener, bool local) {
  for (;;) {
    Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      greet(std::move(socket), local);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EMFILE || errno == ENFILE) {
      // The listener would stay readable for ever.
      epoll_ctl(poller_.get(), EPOLL_CTL_DEL, listener.get(), nullptr);
      fail({Code::resources,
            "the rendezvous has no file descriptors left for more ranks; raise the "
            "limit (ulimit -n)"});
    }
    return;
  }
}

void Rendezvous::greet(Descriptor socket, bool local) {
  Connection connection;
  connection.local = local;
  if (local) {
    const Result<Peer> peer = peer_of(socket);
    if (!peer.ok() || peer->uid != geteuid()) {
      ++strangers_;
      return;
    }
    connection.peer = *peer;
  }
  const Result<Nonce> nonce = random_nonce();
  if (!nonce.ok()) return fail(nonce.error());
  connection.nonce = *nonce;
  make_room();
  if (!send_frame(socket, encode(Challenge{*nonce})) || !watch(socket).ok()) return;
  connection.number = greeted_++;
  connection.socket = std::move(socket);
  const int number = connection.socket.get();
  connections_.emplace(number, std::move(connection));
}

void Rendezvous::make_room() {
  const std::size_t most = static_cast<std::size_t>(options_.ranks) + kMostUnknown;
  auto oldest = connections_.end();
  std::size_t unknown = 0;
  for (auto each = connections_.begin(); each != connections_.end(); ++each) {
    if (each->second.rank >= 0) continue;
    ++unknown;
    if (oldest == connections_.end() || each->second.number < oldest->second.number) oldest = each;
  }
  if (unknown >= most) drop_stranger(oldest);
}

void Rendezvous::read_from(Connections::iterator connection) {
  std::array<char, kHelloFrameBytes> buffer{};
  std::string& received = connection->second.received;
  const ssize_t count =
      recv(connection->second.socket.get(), buffer.data(), buffer.size() - received.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const int rank = connection->second.rank;
  if (rank >= 0) {
    // A rank has nothing to say after its Hello: this is its end.
    const Place& place = places_[static_cast<std::size_t>(rank)];
    connections_.erase(connection);
    if (state_ == State::gathering) {
      fail({Code::rank_lost, fmt::format("rank {} ({}) ended before all ranks had joined the job",
                                         name_of(static_cast<std::uint32_t>(rank)), place.origin)});
    }
    return;
  }
  if (count <= 0) return drop_stranger(connection);
  received.append(buffer.data(), static_cast<std::size_t>(count));
  const Result<std::optional<Decoded>> decoded = decode(received);
  if (!decoded.ok()) {
    base::log(LogLevel::info, kComponent, "dropped a connection: {}", decoded.error().message);
    return drop_stranger(connection);
  }
  if (!decoded->has_value()) return;
  const Hello* hello = std::get_if<Hello>(&(*decoded)->message);
  if (hello == nullptr) return drop_stranger(connection);
  take_hello(connection, *hello);
}

void Rendezvous::drop_stranger(Connections::iterator connection) {
  ++strangers_;
  connections_.erase(connection);
}

int Rendezvous::name_of(std::uint32_t rank) const {
  return rank < options_.names.size() ? options_.names[rank] : static_cast<int>(rank);
}

// For people.
std::string Rendezvous::origin(const Connection& connection, const Hello& hello) const {
  if (connection.local) return fmt::format("pid {}", connection.peer.pid);
  return fmt::format("{} host, {}", hello.host == host_ ? "this" : "another",
                     peer_ip_text(connection.socket));
}

// Why the job cannot become complete with this rank; code ok if nothing is wrong.
Error Rendezvous::objection(const Connection& connection, const Hello& hello) const {
  const std::string who =
      fmt::format("rank {} ({})", name_of(hello.rank), origin(connection, hello));
  if (static_cast<int>(hello.ranks) != options_.ranks) {
    return {Code::argument,
            fmt::format("{} was told that the job has {} ranks, the rendezvous that "
                        "it has {}; check UNISONO_SIZE or the launcher",
                        who, hello.ranks, options_.ranks)};
  }
  if (connection.local && hello.host != host_) {
    return {Code::state, fmt::format("{} comes over a Unix socket, but says that it is on another "
                                     "host than the rendezvous",
                                     who)};
  }
  if (connection.local && connection.peer.pid == 0) {
    return {Code::unsupported,
            fmt::format("rank {} is in a pid namespace that the rendezvous does not see: the ranks "
                        "on a host must share one",
                        name_of(hello.rank))};
  }
  return {};
}

void Rendezvous::take_hello(Connections::iterator connection, const Hello& hello) {
  if (!signature_is_right(connection->second.received, key_, connection->second.nonce)) {
    ++strangers_;
    return refuse(connection, {Code::argument,
                               "the job key does not fit: UNISONO_JOB_KEY must be "
                               "the same for all ranks of a job"});
  }
  if (state_ == State::failed) return refuse(connection, error_);
  Error error = objection(connection->second, hello);
  if (error.code != Code::ok) {
    // The job cannot become complete any more, so nobody need wait for the deadline.
    refuse(connection, error);
    if (state_ == State::gathering) fail(error);
    return;
  }
  if (!connection->second.local && hello.host == host_) return redirect(connection, hello);
  const std::string from = origin(connection->second, hello);
  if (state_ == State::started) {
    return refuse(connection,
                  {Code::state, fmt::format("rank {} ({}) comes too late: job {} has started, and "
                                            "each rank joins it once",
                                            name_of(hello.rank), from, options_.job)});
  }
  const Place& place = places_[hello.rank];
  if (place.socket >= 0) {
    error = {Code::argument, fmt::format("rank {} was claimed twice: by {}, which keeps it, and "
                                         "by {}; each rank joins once",
                                         name_of(hello.rank), place.origin, from)};
    if (notes_.size() < kMostNotesBytes) notes_ += fmt::format("; {}", error.message);
    return refuse(connection, error);
  }
  seat(connection, hello);
}

void Rendezvous::redirect(Connections::iterator connection, const Hello& hello) {
  std::string frame = encode(Redirect{unix_address_.name, host_});
  sign(frame, key_, hello.nonce);
  send_frame(connection->second.socket, frame);
  connections_.erase(connection);
}

void Rendezvous::refuse(Connections::iterator connection, const Error& error) {
  send_frame(connection->second.socket, encode(Refused{error.code, error.message}));
  connections_.erase(connection);
}

void Rendezvous::seat(Connections::iterator connection, const Hello& hello) {
  Connection& kept = connection->second;
  kept.rank = static_cast<int>(hello.rank);
  kept.received.clear();
  if (!kept.local) make_room_for_welcome(kept.socket);
  places_[hello.rank] = {connection->first, origin(kept, hello)};
  // Over TCP nobody vouches for a pid.
  const auto pid = kept.local ? static_cast<std::uint32_t>(kept.peer.pid) : 0;
  arrivals_[hello.rank] = {hello, pid};
  options_.memory_bytes = std::max(options_.memory_bytes, hello.memory_bytes);
  if (came_ == 0) deadline_ns_ = std::min(deadline_ns_, base::now_ns() + options_.timeout_ns);
  ++came_;
  base::log(LogLevel::debug, kComponent, "rank {} ({}) came, {} of {}", name_of(hello.rank),
            places_[hello.rank].origin, came_, options_.ranks);
  if (came_ == options_.ranks) start();
}

void Rendezvous::start() {
  const Result<std::uint64_t> job_id = random_number();
  if (!job_id.ok()) return fail(job_id.error());
  const Result<Welcome> welcome =
      compose_welcome({options_.job, *job_id, options_.memory_bytes}, arrivals_);
  if (!welcome.ok()) return fail(welcome.error());
  Descriptor memory;
  const bool has_local =
      std::ranges::any_of(arrivals_, [](const Arrival& arrival) { return arrival.pid != 0; });
  if (has_local) {
    Result<Descriptor> created = create_memory(options_.memory_bytes);
    if (!created.ok()) return fail(created.error());
    memory = std::move(*created);
  }
  welcome_all(*welcome, memory);
  state_ = State::started;
  base::log(LogLevel::info, kComponent, "job {} of {} ranks on {} {} has started", options_.job,
            options_.ranks, welcome->hosts, welcome->hosts == 1 ? "host" : "hosts");
}

void Rendezvous::welcome_all(const Welcome& welcome, const Descriptor& memory) {
  const std::string unsigned_frame = encode(welcome);
  for (std::size_t rank = 0; rank < places_.size(); ++rank) {
    std::string frame = unsigned_frame;
    sign(frame, key_, arrivals_[rank].hello.nonce);
    const Connection& connection = connections_.at(places_[rank].socket);
    // A rank that ended just now does not get it; the others learn of its death as of any later.
    send_frame(connection.socket, frame, connection.local ? memory.get() : -1);
  }
}

void Rendezvous::fail(Error error) {
  if (state_ != State::gathering) return;
  state_ = State::failed;
  error_ = std::move(error);
  const std::string frame = encode(Refused{error_.code, error_.message});
  for (auto each = connections_.begin(); each != connections_.end();) {
    if (each->second.rank < 0) {
      ++each;
      continue;
    }
    send_frame(each->second.socket, frame);
    each = connections_.erase(each);
  }
}

std::string Rendezvous::missing_text() const {
  std::vector<int> missing;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    if (!has_joined(rank)) missing.push_back(name_of(static_cast<std::uint32_t>(rank)));
  }
  return fmt::format(
      "{} of {} ranks{} did not join within {} (UNISONO_START_TIMEOUT): missing {} {}{}",
      missing.size(), options_.ranks, options_.names.empty() ? "" : " of this host",
      base::format_time_ns(options_.timeout_ns), missing.size() == 1 ? "rank" : "ranks",
      rank_list(missing), notes_);
}

}  // namespace unisono::group
