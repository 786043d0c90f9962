// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/rendezvous.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "memory/memory_file.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::LogLevel;
using base::Result;
using base::Status;

constexpr std::string_view kComponent = "rendezvous";
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
// The longest Welcome has 115 KiB. A new TCP socket has a smaller buffer, and sending must not
// wait.
constexpr int kWelcomeBufferBytes = 256 << 10;

void make_room_for_welcome(const Descriptor& socket) {
  // The system may allow less; all but the largest jobs fit in any case.
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kWelcomeBufferBytes,
             sizeof(kWelcomeBufferBytes));
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
  UNISONO_ASSIGN(server->host_, own_host_id());
  UNISONO_TRY(server->start_listening(std::move(listener)));
  return server;
}

Rendezvous::Rendezvous(const Options& options)
    : options_(options),
      key_(wire::key_of(options.key)),
      address_(options.address),
      roster_(options.ranks),
      deadline_ns_(kNever) {
  outcome_.heard = options.heard;
  outcome_.heard.resize(static_cast<std::size_t>(options.ranks));
}

Status Rendezvous::start_listening(Descriptor listener) {
  UNISONO_ASSIGN(acceptor_, Acceptor::open(key_, options_.ranks));
  const bool tcp = address_.kind == Address::Kind::tcp;
  if (tcp || address_.name.empty()) {
    UNISONO_ASSIGN(unix_address_, random_unix_address());
  } else {
    unix_address_ = address_;
  }
  if (!tcp && listener.valid()) {
    UNISONO_TRY(acceptor_->listen(std::move(listener), true));
  } else {
    UNISONO_TRY(acceptor_->listen(unix_address_));
  }
  if (tcp) {
    if (listener.valid()) {
      UNISONO_TRY(acceptor_->listen(std::move(listener), false));
    } else {
      UNISONO_TRY(acceptor_->listen(address_));
    }
  } else {
    address_ = unix_address_;
  }
  if (options_.job.empty()) options_.job = unix_address_.name;
  return base::success();
}

std::int64_t Rendezvous::next_deadline_ns() const {
  return state_ == State::gathering ? deadline_ns_ : kNever;
}

Rendezvous::State Rendezvous::step() {
  Result<std::vector<Acceptor::Event>> events = acceptor_->step();
  if (events.ok()) {
    for (Acceptor::Event& event : *events) take(std::move(event));
  } else if (state_ == State::gathering) {
    fail(events.error());
    outcome_.is_deaf = true;
    acceptor_->close_listeners();  // ranks that wait there could not be told
  }
  if (state_ == State::gathering && base::now_ns() >= deadline_ns_) {
    fail({Code::timeout,
          roster_.missing_text(options_.timeout_ns) + acceptor_->note_of_wrong_key()});
  }
  return state_;
}

void Rendezvous::end_at(std::int64_t deadline_ns) {
  deadline_ns_ = std::min(deadline_ns_, deadline_ns);
}

Status Rendezvous::serve(std::int64_t deadline_ns) {
  end_at(deadline_ns);
  while (state_ == State::gathering) {
    pollfd waiting{descriptor(), POLLIN, 0};
    if (poll(&waiting, 1, base::poll_timeout_ms(deadline_ns_)) < 0 && errno != EINTR) {
      fail(base::system_error("poll", errno));
    }
    step();
  }
  return state_ == State::started ? base::success() : Status(outcome_.failure);
}

void Rendezvous::give_up(const Error& error) { fail(error); }

void Rendezvous::rank_ended(int rank, std::string_view how) {
  if (state_ != State::gathering) return;
  fail({Code::rank_lost, fmt::format("rank {} {} before all ranks had joined the job", rank, how)});
}

std::vector<Descriptor> Rendezvous::release_connections() { return acceptor_->release_admitted(); }

void Rendezvous::take(Acceptor::Event event) {
  if (!event.message) return connection_ended(event.connection);
  const Acceptor::Connection* const connection = acceptor_->find(event.connection);
  if (connection == nullptr) return;  // it has been told that the job has failed
  if (const Withdrawal* withdrawal = std::get_if<Withdrawal>(&*event.message)) {
    return take_withdrawal(event.connection, *withdrawal);
  }
  if (connection->admitted && connection->local) {
    // Only a relay sends further Hellos.
    acceptor_->close(event.connection);
    return connection_ended(event.connection);
  }
  if (const Hello* hello = std::get_if<Hello>(&*event.message)) {
    take_hello(event.connection, *hello);
  }
}

// The end of a connection is taken for the end of the rank.
void Rendezvous::connection_ended(ConnectionId connection) {
  const JoinedRank* const rank = roster_.find(connection);
  if (rank == nullptr) return;
  if (state_ == State::started && rank->pid == 0) {
    outcome_.lost.push_back(static_cast<int>(rank->hello.rank));
  }
  if (state_ != State::gathering) return;
  fail({Code::rank_lost, fmt::format("rank {} ({}) ended before all ranks had joined the job",
                                     rank->hello.rank, rank->origin)});
}

// Ignored for a rank that has not joined: its Hello may have been refused meanwhile.
void Rendezvous::take_withdrawal(ConnectionId relay, const Withdrawal& withdrawal) {
  const JoinedRank* const rank = roster_.find(relay, withdrawal.hello);
  if (rank == nullptr) return;
  const std::string who = fmt::format("rank {} ({})", rank->hello.rank, rank->origin);
  if (withdrawal.reason == Withdrawal::Reason::failed) {
    rank_cannot_start_ = true;
    return fail({withdrawal.code, fmt::format("{} cannot start: {}", who, withdrawal.text)});
  }
  if (state_ != State::gathering) return;
  switch (withdrawal.reason) {
    case Withdrawal::Reason::failed:
      return;
    case Withdrawal::Reason::ended:
      return fail(
          {Code::rank_lost, fmt::format("{} ended before all ranks had joined the job", who)});
    case Withdrawal::Reason::unseen_pid:
      return fail({Code::unsupported,
                   fmt::format("{} is in a pid namespace that its host's relay does not see: the "
                               "ranks on a host must share one",
                               who)});
  }
}

// For messages.
std::string Rendezvous::origin(ConnectionId connection, const Hello& hello) const {
  const Acceptor::Connection& from = *acceptor_->find(connection);
  if (from.local) return fmt::format("pid {}", from.peer.pid);
  return fmt::format("{} host, {}", hello.host == host_ ? "this" : "another",
                     peer_ip_text(from.socket));
}

// Why the job cannot start with this rank; code ok if it can.
Error Rendezvous::reason_to_fail(ConnectionId connection, const Hello& hello) const {
  const Acceptor::Connection& from = *acceptor_->find(connection);
  const std::string who = fmt::format("rank {} ({})", hello.rank, origin(connection, hello));
  if (static_cast<int>(hello.ranks) != options_.ranks) {
    return {Code::argument,
            fmt::format("{} was told that the job has {} ranks, the rendezvous that "
                        "it has {}; check UNISONO_SIZE or the launcher",
                        who, hello.ranks, options_.ranks)};
  }
  if (hello.failure != Code::ok) {
    return {hello.failure, fmt::format("{} cannot start: {}", who, hello.failure_text)};
  }
  if (from.local && hello.host != host_) {
    return {Code::state,
            fmt::format("{} connects over a Unix socket, but says that it is on another "
                        "host than the rendezvous",
                        who)};
  }
  if (from.local && from.peer.pid == 0) {
    return {Code::unsupported,
            fmt::format("rank {} is in a pid namespace that the rendezvous does not see: the ranks "
                        "on a host must share one",
                        hello.rank)};
  }
  if (from.local) return {};
  if (is_relay(connection)) {
    const JoinedRank* const relay = roster_.relay_of(hello.host);
    if (relay != nullptr && relay->connection == connection) return {};
    return {Code::state, fmt::format("{} joins through a rank of another host than its own", who)};
  }
  if (hello.host == host_ || hello.relay_socket != 0) return {};
  return {Code::state, fmt::format("{} has no socket for the other ranks of its host", who)};
}

bool Rendezvous::still_tells_failure() const {
  return rank_cannot_start_ && std::ranges::find(outcome_.heard, false) != outcome_.heard.end();
}

void Rendezvous::take_hello(ConnectionId connection, const Hello& hello) {
  if (hello.rank < outcome_.heard.size()) outcome_.heard[hello.rank] = true;
  if (state_ == State::failed) return refuse(connection, hello, outcome_.failure);
  const Error error = reason_to_fail(connection, hello);
  if (error.code != Code::ok) {
    // The job cannot start any more, so no rank need wait for the deadline.
    rank_cannot_start_ |= hello.failure != Code::ok;
    refuse(connection, hello, error);
    return fail(error);
  }
  const bool local = acceptor_->find(connection)->local;
  const bool goes_to_unix_socket = !local && hello.host == host_;
  if (!goes_to_unix_socket) {
    const std::string from = origin(connection, hello);
    if (state_ == State::started) {
      return refuse(connection, hello,
                    {Code::state, fmt::format("rank {} ({}) is too late: job {} has started, and "
                                              "each rank joins it once",
                                              hello.rank, from, options_.job)});
    }
    if (has_joined(static_cast<int>(hello.rank))) {
      return refuse(connection, hello, roster_.claimed_twice(hello.rank, from));
    }
  }
  if (local || is_relay(connection) || !redirect(connection, hello)) {
    return record_join(connection, hello);
  }
  // It will hear of a failure where it joins, or asks again.
  if (hello.rank < outcome_.heard.size()) outcome_.heard[hello.rank] = false;
}

// Redirects a rank that connects over TCP to the Unix socket by which its host's ranks join, if
// there is one.
bool Rendezvous::redirect(ConnectionId connection, const Hello& hello) {
  Redirect target{unix_address_.name, host_, kNoRelay};
  if (hello.host != host_) {
    const JoinedRank* const relay = roster_.relay_of(hello.host);
    if (relay == nullptr) return false;
    target = {relay_address(relay->hello.relay_socket).name, hello.host, relay->hello.rank};
  }
  std::string frame = encode(target);
  sign(frame, key_, hello.nonce);
  acceptor_->send(connection, frame);
  acceptor_->close(connection);
  return true;
}

void Rendezvous::refuse(ConnectionId connection, const Hello& hello, const Error& error) {
  if (!is_relay(connection)) return acceptor_->refuse(connection, error);
  acceptor_->send_refused(connection, {error.code, error.message, hello.nonce});
}

void Rendezvous::record_join(ConnectionId connection, const Hello& hello) {
  const Acceptor::Connection& from = *acceptor_->find(connection);
  const bool via_relay = from.admitted;
  if (!from.local && !via_relay) make_room_for_welcome(from.socket);
  acceptor_->admit(connection);
  // Over TCP the kernel reports no pid.
  const auto pid = from.local ? static_cast<std::uint32_t>(from.peer.pid) : 0;
  if (roster_.joined() == 0) {
    deadline_ns_ = std::min(deadline_ns_, base::now_ns() + options_.timeout_ns);
  }
  roster_.add({hello, pid, connection, via_relay, origin(connection, hello)});
  options_.memory_bytes = std::max(options_.memory_bytes, hello.memory_bytes);
  base::log(LogLevel::debug, kComponent, "rank {} ({}) joined, {} of {}", hello.rank,
            roster_.ranks()[hello.rank].origin, roster_.joined(), options_.ranks);
  if (roster_.is_complete()) start();
}

void Rendezvous::start() {
  const Result<std::uint64_t> job_id = random_number();
  if (!job_id.ok()) return fail(job_id.error());
  Result<Welcome> welcome =
      compose_welcome({options_.job, *job_id, options_.memory_bytes}, roster_.ranks());
  if (!welcome.ok()) return fail(welcome.error());
  welcome->rank_zero_serves = options_.is_rank_zero;
  Descriptor memory;
  if (roster_.has_local_rank()) {
    Result<Descriptor> created = memory::create_memory(options_.memory_bytes);
    if (!created.ok()) return fail(created.error());
    memory = std::move(*created);
  }
  const std::string unsigned_frame = encode(*welcome);
  for (const JoinedRank& rank : roster_.ranks()) {
    if (rank.via_relay) continue;
    std::string frame = unsigned_frame;
    sign(frame, key_, rank.hello.nonce);
    // A rank that has just ended does not get it. The job detects its death as any later one.
    acceptor_->send(rank.connection, frame, rank.pid != 0 ? memory.get() : -1);
  }
  state_ = State::started;
  base::log(LogLevel::info, kComponent, "job {} of {} ranks on {} {} has started", options_.job,
            options_.ranks, welcome->hosts, welcome->hosts == 1 ? "host" : "hosts");
}

void Rendezvous::fail(Error error) {
  if (state_ == State::failed) return;
  state_ = State::failed;
  outcome_.failure = std::move(error);
  acceptor_->refuse_admitted(outcome_.failure);
}

}  // namespace unisono::bootstrap
