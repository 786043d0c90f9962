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
#include "base/text.hpp"
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
  UNISONO_ASSIGN(server->host_, own_host_id());
  UNISONO_TRY(server->start_listening(std::move(listener)));
  return server;
}

Rendezvous::Rendezvous(const Options& options)
    : options_(options),
      key_(wire::key_of(options.key)),
      address_(options.address),
      places_(static_cast<std::size_t>(options.ranks)),
      arrivals_(static_cast<std::size_t>(options.ranks)),
      deadline_ns_(kNever) {}

Status Rendezvous::start_listening(Descriptor listener) {
  UNISONO_ASSIGN(reception_, Reception::open(key_, options_.ranks));
  const bool tcp = address_.kind == Address::Kind::tcp;
  if (tcp || address_.name.empty()) {
    UNISONO_ASSIGN(unix_address_, random_unix_address());
  } else {
    unix_address_ = address_;
  }
  UNISONO_TRY(reception_->listen(unix_address_));
  if (tcp) {
    if (listener.valid()) {
      UNISONO_TRY(reception_->listen(std::move(listener), false));
    } else {
      UNISONO_TRY(reception_->listen(address_));
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
  Result<std::vector<Reception::Event>> events = reception_->step();
  if (events.ok()) {
    for (Reception::Event& event : *events) take(std::move(event));
  } else {
    fail(events.error());
  }
  if (state_ == State::gathering && base::now_ns() >= deadline_ns_) {
    fail({Code::timeout, missing_text()});
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
      fail(system_error("poll", errno));
    }
    step();
  }
  return state_ == State::started ? base::success() : Status(error_);
}

bool Rendezvous::has_joined(int rank) const {
  return places_[static_cast<std::size_t>(rank)].visitor != 0;
}

void Rendezvous::give_up(const Error& error) { fail(error); }

void Rendezvous::rank_ended(int rank, std::string_view how) {
  if (state_ != State::gathering) return;
  fail({Code::rank_lost, fmt::format("rank {} {} before all ranks had joined the job", rank, how)});
}

std::vector<Descriptor> Rendezvous::release_connections() { return reception_->release_kept(); }

void Rendezvous::take(Reception::Event event) {
  if (!event.message) return lose(event.visitor);
  const Reception::Visitor* const visitor = reception_->find(event.visitor);
  if (visitor == nullptr) return;  // was told with all others that the job has failed
  if (visitor->kept && visitor->local) {
    // A rank has nothing to say after its Hello, unless it is a gate.
    reception_->close(event.visitor);
    return lose(event.visitor);
  }
  if (const Hello* hello = std::get_if<Hello>(&*event.message)) {
    take_hello(event.visitor, *hello);
  } else if (const Objection* objection = std::get_if<Objection>(&*event.message)) {
    take_objection(event.visitor, *objection);
  }
}

// The end of a connection is the end of the rank.
void Rendezvous::lose(Number visitor) {
  if (state_ != State::gathering) return;
  for (std::size_t rank = 0; rank < places_.size(); ++rank) {
    if (places_[rank].visitor != visitor || places_[rank].by_gate) continue;
    return fail({Code::rank_lost, fmt::format("rank {} ({}) ended before all ranks had joined the "
                                              "job",
                                              rank, places_[rank].origin)});
  }
}

// Of a rank that is seated: another Hello may have been refused meanwhile.
void Rendezvous::take_objection(Number gate, const Objection& objection) {
  if (state_ != State::gathering) return;
  for (std::size_t rank = 0; rank < places_.size(); ++rank) {
    if (places_[rank].visitor != gate || arrivals_[rank].hello.nonce != objection.hello) continue;
    const std::string who = fmt::format("rank {} ({})", rank, places_[rank].origin);
    switch (objection.reason) {
      case Objection::Reason::ended:
        return fail(
            {Code::rank_lost, fmt::format("{} ended before all ranks had joined the job", who)});
      case Objection::Reason::unseen_pid:
        return fail({Code::unsupported,
                     fmt::format("{} is in a pid namespace that the rank by which it comes does "
                                 "not see: the ranks on a host must share one",
                                 who)});
    }
  }
}

// For people.
std::string Rendezvous::origin(Number visitor, const Hello& hello) const {
  const Reception::Visitor& from = *reception_->find(visitor);
  if (from.local) return fmt::format("pid {}", from.peer.pid);
  return fmt::format("{} host, {}", hello.host == host_ ? "this" : "another",
                     peer_ip_text(from.socket));
}

// Why the job cannot become complete with this rank; code ok if nothing is wrong.
Error Rendezvous::objection(Number visitor, const Hello& hello) const {
  const Reception::Visitor& from = *reception_->find(visitor);
  const std::string who = fmt::format("rank {} ({})", hello.rank, origin(visitor, hello));
  if (static_cast<int>(hello.ranks) != options_.ranks) {
    return {Code::argument,
            fmt::format("{} was told that the job has {} ranks, the rendezvous that "
                        "it has {}; check UNISONO_SIZE or the launcher",
                        who, hello.ranks, options_.ranks)};
  }
  if (from.local && hello.host != host_) {
    return {Code::state, fmt::format("{} comes over a Unix socket, but says that it is on another "
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
  if (is_gate(visitor)) {
    const auto gate = gates_.find(hello.host);
    if (gate != gates_.end() && gate->second.visitor == visitor) return {};
    return {Code::state, fmt::format("{} comes by a rank of another host than its own", who)};
  }
  if (hello.host == host_ || hello.door != 0) return {};
  return {Code::state, fmt::format("{} has no socket for the other ranks of its host", who)};
}

// Why a rank that fits is not let in; code ok if it is.
Error Rendezvous::too_late_or_twice(const Hello& hello, const std::string& from) {
  if (state_ == State::started) {
    return {Code::state, fmt::format("rank {} ({}) comes too late: job {} has started, and "
                                     "each rank joins it once",
                                     hello.rank, from, options_.job)};
  }
  const Place& place = places_[hello.rank];
  if (place.visitor == 0) return {};
  Error error{Code::argument, fmt::format("rank {} was claimed twice: by {}, which keeps it, and "
                                          "by {}; each rank joins once",
                                          hello.rank, place.origin, from)};
  if (notes_.size() < kMostNotesBytes) notes_ += fmt::format("; {}", error.message);
  return error;
}

void Rendezvous::take_hello(Number visitor, const Hello& hello) {
  if (state_ == State::failed) return refuse(visitor, hello, error_);
  Error error = objection(visitor, hello);
  if (error.code != Code::ok) {
    // The job cannot become complete any more, so nobody need wait for the deadline.
    refuse(visitor, hello, error);
    return fail(error);
  }
  const bool local = reception_->find(visitor)->local;
  const bool led_to_unix_socket = !local && hello.host == host_;
  if (!led_to_unix_socket) {
    error = too_late_or_twice(hello, origin(visitor, hello));
    if (error.code != Code::ok) return refuse(visitor, hello, error);
  }
  if (local || is_gate(visitor) || !redirect(visitor, hello)) seat(visitor, hello);
}

// Sends a rank that comes over TCP to the Unix socket by which its host's ranks join, if there is
// one.
bool Rendezvous::redirect(Number visitor, const Hello& hello) {
  Redirect target{unix_address_.name, host_, kNoGate};
  if (hello.host != host_) {
    const auto gate = gates_.find(hello.host);
    if (gate == gates_.end()) return false;
    target = {gate_address(gate->second.door).name, hello.host, gate->second.rank};
  }
  std::string frame = encode(target);
  sign(frame, key_, hello.nonce);
  reception_->send(visitor, frame);
  reception_->close(visitor);
  return true;
}

void Rendezvous::refuse(Number visitor, const Hello& hello, const Error& error) {
  if (!is_gate(visitor)) return reception_->refuse(visitor, error);
  reception_->send_refused(visitor, {error.code, error.message, hello.nonce});
}

void Rendezvous::seat(Number visitor, const Hello& hello) {
  const Reception::Visitor& from = *reception_->find(visitor);
  const bool by_gate = from.kept;
  if (!from.local && !by_gate) {
    gates_[hello.host] = {visitor, hello.rank, hello.door};
    make_room_for_welcome(from.socket);
  }
  reception_->keep(visitor);
  places_[hello.rank] = {visitor, by_gate, origin(visitor, hello)};
  // Over TCP nobody vouches for a pid.
  const auto pid = from.local ? static_cast<std::uint32_t>(from.peer.pid) : 0;
  arrivals_[hello.rank] = {hello, pid};
  options_.memory_bytes = std::max(options_.memory_bytes, hello.memory_bytes);
  if (came_ == 0) deadline_ns_ = std::min(deadline_ns_, base::now_ns() + options_.timeout_ns);
  ++came_;
  base::log(LogLevel::debug, kComponent, "rank {} ({}) came, {} of {}", hello.rank,
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
    Result<Descriptor> created = memory::create_memory(options_.memory_bytes);
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
    if (places_[rank].by_gate) continue;
    std::string frame = unsigned_frame;
    sign(frame, key_, arrivals_[rank].hello.nonce);
    // A rank that ended just now does not get it; the others learn of its death as of any later.
    reception_->send(places_[rank].visitor, frame, arrivals_[rank].pid != 0 ? memory.get() : -1);
  }
}

void Rendezvous::fail(Error error) {
  if (state_ != State::gathering) return;
  state_ = State::failed;
  error_ = std::move(error);
  reception_->refuse_kept(error_);
}

std::string Rendezvous::missing_text() const {
  std::vector<int> missing;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    if (!has_joined(rank)) missing.push_back(rank);
  }
  return fmt::format(
      "{} of {} ranks did not join within {} (UNISONO_START_TIMEOUT): missing {} {}{}",
      missing.size(), options_.ranks, base::format_time_ns(options_.timeout_ns),
      missing.size() == 1 ? "rank" : "ranks", rank_list(missing), notes_);
}

}  // namespace unisono::bootstrap
