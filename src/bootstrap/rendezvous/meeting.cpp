// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/meeting.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread.hpp"
#include "bootstrap/rendezvous/gate.hpp"
#include "bootstrap/rendezvous/line.hpp"
#include "bootstrap/rendezvous/rendezvous.hpp"
#include "memory/memory_file.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;
using base::Status;

// The rendezvous measures the same timeout from the first rank's Hello and can name the missing
// ranks, so a rank gives it this much longer before it speaks for itself.
constexpr std::int64_t kAnswerMarginNs = base::kSecond;
constexpr std::int64_t kFirstRetryNs = base::kMillisecond;
constexpr std::int64_t kLastRetryNs = 50 * base::kMillisecond;

void sleep_ns(std::int64_t time_ns) {
  const timespec time{time_ns / base::kSecond, time_ns % base::kSecond};
  nanosleep(&time, nullptr);  // shorter after a signal: the caller looks at the clock
}

// One rank's way through a meeting.
class Attending {
 public:
  explicit Attending(const Meeting& meeting)
      : meeting_(meeting),
        key_(wire::key_of(meeting.key)),
        who_(fmt::format("rank {} of {}", meeting.rank, meeting.ranks)),
        server_(meeting.server),
        address_(meeting.address) {}

  Result<Outcome> run(Descriptor connected);

 private:
  struct Reply {
    Line line;
    Message message;
  };

  // A connection before the deadline. `gone`: what it means that nobody listens; code ok: not yet.
  Result<Descriptor> reach(std::int64_t deadline_ns, const Error& gone) const;
  // Says Hello and gives the answer: a Welcome or a Redirect. A connection that ends without a
  // proved answer is made anew, for the other side may have had no room for it. What is an error
  // is told to those who came by the gate, if there is one.
  Result<Reply> converse(Descriptor connected, Gate* gate);
  Result<Reply> converse_until(std::int64_t deadline_ns, Descriptor connected, Gate* gate);
  // Empty: the connection has ended, or what came was of a stranger.
  Result<std::optional<Message>> ask(Line& line, Gate* gate, std::int64_t deadline_ns);
  Result<std::optional<Line::Arrival>> say_hello(Line& line, Gate* gate, std::int64_t deadline_ns,
                                                 Nonce& nonce) const;
  std::optional<Message> refused_by_stranger(const Refused& refused);
  Result<Hello> own_hello(const Gate* gate) const;
  Result<Descriptor> follow(const Redirect& redirect);
  Result<Outcome> take_place(Line& line, const Welcome& welcome) const;
  Result<Outcome> take_place_as_gate(Line& line, Gate& gate, const Welcome& welcome) const;
  Status check_ranks(const Welcome& welcome) const;
  Status check_from_afar(const Welcome& welcome) const;
  Status verify(const Outcome& outcome) const;
  Error no_answer() const;
  Error has_ended() const;
  Error no_rendezvous() const;

  const Meeting& meeting_;
  wire::Key key_;
  std::string who_;     // for people: this rank
  std::string server_;  // for people: who listens at
  Address address_;
  int lost_connections_ = 0;    // that ended without an answer
  std::string strangers_text_;  // of the last refusal that nobody proved
};

Result<Descriptor> Attending::reach(std::int64_t deadline_ns, const Error& gone) const {
  std::int64_t retry_ns = kFirstRetryNs;
  for (;;) {
    UNISONO_ASSIGN(ConnectAttempt attempt, attempt_connect(address_, deadline_ns));
    if (attempt.socket.valid()) return std::move(attempt.socket);
    if (!attempt.busy && gone.code != Code::ok) return gone;
    const std::int64_t left_ns = deadline_ns - base::now_ns();
    if (left_ns <= 0) {
      std::string message = fmt::format(
          "{}: {} at {} after {} (UNISONO_START_TIMEOUT); {} hosts the rendezvous, did it start?",
          who_, attempt.busy ? "nobody accepts connections" : "nobody listens",
          address_text(address_), base::format_time_ns(meeting_.timeout_ns), server_);
      if (attempt.others > 0) {
        message += fmt::format(" {} {} of other users {} such a name", attempt.others,
                               attempt.others == 1 ? "socket" : "sockets",
                               attempt.others == 1 ? "has" : "have");
      }
      return Error{Code::timeout, std::move(message)};
    }
    sleep_ns(std::min(retry_ns, left_ns));
    retry_ns = std::min(2 * retry_ns, kLastRetryNs);
  }
}

Error Attending::no_answer() const {
  const std::string where = fmt::format("{}: the rendezvous at {}, which {} hosts,", who_,
                                        address_text(address_), server_);
  if (!strangers_text_.empty()) {
    return {Code::argument,
            fmt::format("{} did not prove within {} (UNISONO_START_TIMEOUT) that it knows this "
                        "job's key (UNISONO_JOB_KEY); what is there says: {}",
                        where, base::format_time_ns(meeting_.timeout_ns), strangers_text_)};
  }
  std::string message = fmt::format("{} gave no answer within {} (UNISONO_START_TIMEOUT)", where,
                                    base::format_time_ns(meeting_.timeout_ns));
  if (lost_connections_ > 0) {
    message += fmt::format("; it closed {} {} of this rank without a word", lost_connections_,
                           lost_connections_ == 1 ? "connection" : "connections");
  }
  return {Code::timeout, std::move(message)};
}

Error Attending::has_ended() const {
  return {Code::rank_lost,
          fmt::format("{}: the rendezvous at {}, which {} hosts, ended before all ranks had joined",
                      who_, address_text(address_), server_)};
}

Error Attending::no_rendezvous() const {
  return {Code::state, fmt::format("{} is no rendezvous", address_text(address_))};
}

Result<Hello> Attending::own_hello(const Gate* gate) const {
  Hello hello;
  UNISONO_ASSIGN(hello.nonce, random_nonce());
  UNISONO_ASSIGN(hello.host, own_host_id());
  hello.rank = static_cast<std::uint32_t>(meeting_.rank);
  hello.ranks = static_cast<std::uint32_t>(meeting_.ranks);
  hello.memory_bytes = meeting_.memory_bytes;
  hello.memory_layout = meeting_.memory_layout;
  hello.endpoint = meeting_.endpoint;
  hello.max_payload = meeting_.max_payload;
  if (gate != nullptr) hello.door = gate->door();
  return hello;
}

Result<std::optional<Line::Arrival>> Attending::say_hello(Line& line, Gate* gate,
                                                          std::int64_t deadline_ns,
                                                          Nonce& nonce) const {
  if (address_.kind != Address::Kind::tcp) {
    UNISONO_ASSIGN(const Peer peer, peer_of(line.socket()));
    if (peer.uid != geteuid()) {
      return Error{Code::argument,
                   fmt::format("{}: {} belongs to user {}, this process to user {}: not our "
                               "rendezvous; give the job another name (UNISONO_RENDEZVOUS)",
                               who_, address_text(address_), peer.uid, geteuid())};
    }
  }
  UNISONO_ASSIGN(const std::optional<Line::Arrival> greeting, line.receive(deadline_ns));
  if (!greeting) return std::optional<Line::Arrival>();
  const Challenge* challenge = std::get_if<Challenge>(&greeting->message);
  if (challenge == nullptr) return no_rendezvous();
  UNISONO_ASSIGN(const Hello hello, own_hello(gate));
  nonce = hello.nonce;
  std::string frame = encode(hello);
  sign(frame, key_, challenge->nonce);
  UNISONO_TRY(line.send(frame));
  return gate != nullptr ? gate->await_answer(line, challenge->nonce, nonce, deadline_ns)
                         : line.receive(deadline_ns);
}

// Whoever is between the hosts, or has the port, cannot keep a rank out.
std::optional<Message> Attending::refused_by_stranger(const Refused& refused) {
  if (strangers_text_.empty()) {
    base::log(base::LogLevel::warn, "bootstrap",
              "{}: what listens at {} refuses this rank, but does not prove that it knows this "
              "job's key (UNISONO_JOB_KEY); trying again. It says: {}",
              who_, address_text(address_), refused.text);
  }
  strangers_text_ = refused.text;
  return {};
}

Result<std::optional<Message>> Attending::ask(Line& line, Gate* gate, std::int64_t deadline_ns) {
  Nonce nonce{};
  UNISONO_ASSIGN(std::optional<Line::Arrival> answer, say_hello(line, gate, deadline_ns, nonce));
  if (!answer) {
    if (line.closed()) ++lost_connections_;
    return std::optional<Message>();
  }
  const bool proved = signature_is_right(answer->frame, key_, nonce);
  if (const Refused* refused = std::get_if<Refused>(&answer->message)) {
    // Of a Unix socket the kernel says whose it is; so a wrong key is known at once.
    if (!proved && address_.kind == Address::Kind::tcp) return refused_by_stranger(*refused);
    return Error{refused->code, refused->text};
  }
  if (!proved) {
    return Error{Code::argument, fmt::format("{} does not know this job's key (UNISONO_JOB_KEY): "
                                             "not our rendezvous",
                                             address_text(address_))};
  }
  return std::optional(std::move(answer->message));
}

Result<Attending::Reply> Attending::converse(Descriptor connected, Gate* gate) {
  const std::int64_t deadline_ns = base::now_ns() + meeting_.timeout_ns + kAnswerMarginNs;
  Result<Reply> reply = converse_until(deadline_ns, std::move(connected), gate);
  if (!reply.ok() && gate != nullptr) gate->refuse_all(reply.error());
  return reply;
}

Result<Attending::Reply> Attending::converse_until(std::int64_t deadline_ns, Descriptor connected,
                                                   Gate* gate) {
  lost_connections_ = 0;
  strangers_text_.clear();
  std::int64_t retry_ns = kFirstRetryNs;
  for (;;) {
    Line line(std::move(connected));
    UNISONO_ASSIGN(std::optional<Message> message, ask(line, gate, deadline_ns));
    if (message) return Reply{std::move(line), std::move(*message)};
    const std::int64_t left_ns = deadline_ns - base::now_ns();
    if (left_ns <= 0) return no_answer();
    sleep_ns(std::min(retry_ns, left_ns));
    retry_ns = std::min(2 * retry_ns, kLastRetryNs);
    UNISONO_ASSIGN(connected, reach(deadline_ns, has_ended()));
  }
}

Result<Descriptor> Attending::follow(const Redirect& redirect) {
  UNISONO_ASSIGN(const HostId host, own_host_id());
  if (host != redirect.host) {
    return Error{Code::state,
                 fmt::format("{}: the rendezvous at {} sent it to a socket of another host", who_,
                             address_text(address_))};
  }
  address_ = {Address::Kind::unix_name, redirect.name, 0};
  if (redirect.gate != kNoGate) server_ = fmt::format("rank {}", redirect.gate);
  // Who listens there did so before this was said.
  return reach(base::now_ns() + meeting_.timeout_ns, has_ended());
}

Result<Outcome> Attending::run(Descriptor connected) {
  if (!connected.valid()) {
    UNISONO_ASSIGN(connected, reach(base::now_ns() + meeting_.timeout_ns, Error{}));
  }
  if (address_.kind == Address::Kind::tcp) {
    UNISONO_ASSIGN(const std::unique_ptr<Gate> gate, Gate::open(key_, meeting_.ranks));
    UNISONO_ASSIGN(Reply reply, converse(std::move(connected), gate.get()));
    if (const Welcome* welcome = std::get_if<Welcome>(&reply.message)) {
      return take_place_as_gate(reply.line, *gate, *welcome);
    }
    const Redirect* redirect = std::get_if<Redirect>(&reply.message);
    if (redirect == nullptr) return no_rendezvous();
    UNISONO_ASSIGN(connected, follow(*redirect));
  }
  UNISONO_ASSIGN(Reply reply, converse(std::move(connected), nullptr));
  const Welcome* welcome = std::get_if<Welcome>(&reply.message);
  if (welcome == nullptr) return no_rendezvous();
  return take_place(reply.line, *welcome);
}

Status Attending::check_ranks(const Welcome& welcome) const {
  if (welcome.places.size() == static_cast<std::size_t>(meeting_.ranks)) return base::success();
  return Error{Code::state, fmt::format("the rendezvous speaks of {} ranks, the launcher of {}",
                                        welcome.places.size(), meeting_.ranks)};
}

Result<Outcome> Attending::take_place(Line& line, const Welcome& welcome) const {
  UNISONO_TRY(check_ranks(welcome));
  Outcome outcome;
  outcome.welcome = welcome;
  outcome.memory = line.take_attached();
  UNISONO_TRY(verify(outcome));
  outcome.connection = line.take_socket();
  return outcome;
}

Result<Outcome> Attending::take_place_as_gate(Line& line, Gate& gate,
                                              const Welcome& welcome) const {
  const Status fits = check_from_afar(welcome);
  Result<Gate::Handed> handed =
      fits.ok() ? gate.hand_on(welcome, meeting_.rank) : Result<Gate::Handed>(fits.error());
  if (!handed.ok()) {
    gate.refuse_all(handed.error());
    return handed.error();
  }
  Outcome outcome;
  outcome.welcome = std::move(handed->welcome);
  outcome.memory = std::move(handed->memory);
  outcome.connection = line.take_socket();
  outcome.accepted = std::move(handed->guests);
  return outcome;
}

Status Attending::check_from_afar(const Welcome& welcome) const {
  UNISONO_TRY(check_ranks(welcome));
  const std::uint32_t own = welcome.places[static_cast<std::size_t>(meeting_.rank)].pid;
  if (own == 0) return base::success();
  return Error{Code::state,
               fmt::format("{}: the rendezvous at {} is on another host, but speaks of "
                           "pid {}",
                           who_, address_text(address_), own)};
}

Status Attending::verify(const Outcome& outcome) const {
  const std::uint32_t own = outcome.welcome.places[static_cast<std::size_t>(meeting_.rank)].pid;
  UNISONO_TRY(memory::verify_memory(outcome.memory, outcome.welcome.memory_bytes));
  if (own == static_cast<std::uint32_t>(getpid())) return base::success();
  return Error{Code::unsupported,
               fmt::format("{} has pid {} here and pid {} at the rendezvous: the ranks on a host "
                           "must share one pid namespace",
                           who_, getpid(), own)};
}

// Serves a rendezvous in a thread until the rank that hosts it has its own outcome. Until then the
// ranks, this one included, are told what fails the start, also if they come after it; what fails
// for this rank alone is told to the others.
class Serving {
 public:
  Serving(Rendezvous& server, const Meeting& meeting) : server_(server), meeting_(meeting) {}

  Status start();
  void end(const Error& own_trouble);

 private:
  void serve();

  Rendezvous& server_;
  const Meeting& meeting_;
  Descriptor ending_;  // wakes the thread
  std::atomic<bool> ended_ = false;
  Error own_trouble_;  // before ended_
  std::thread thread_;
};

Status Serving::start() {
  server_.end_at(base::now_ns() + meeting_.timeout_ns);
  ending_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!ending_.valid()) return system_error("eventfd", errno);
  Result<std::thread> started = base::start_thread("unisono-meeting", [this] { serve(); });
  if (!started.ok()) {
    return Error{started.error().code,
                 fmt::format("rank {} of {} cannot start a thread for the rendezvous: {}",
                             meeting_.rank, meeting_.ranks, started.error().message)};
  }
  thread_ = std::move(*started);
  return base::success();
}

void Serving::end(const Error& own_trouble) {
  own_trouble_ = own_trouble;
  ended_ = true;
  eventfd_write(ending_.get(), 1);
  thread_.join();
}

void Serving::serve() {
  for (;;) {
    std::array<pollfd, 2> waiting{{{ending_.get(), POLLIN, 0}, {server_.descriptor(), POLLIN, 0}}};
    const bool gathering = server_.state() == Rendezvous::State::gathering;
    const int timeout_ms = gathering ? base::poll_timeout_ms(server_.next_deadline_ns()) : -1;
    poll(waiting.data(), waiting.size(), timeout_ms);  // fails: as if nothing had happened
    server_.step();
    if (!ended_) continue;
    if (own_trouble_.code != Code::ok) server_.give_up(own_trouble_);
    return;
  }
}

}  // namespace

Result<Outcome> attend(const Meeting& meeting, Descriptor connected) {
  return Attending(meeting).run(std::move(connected));
}

Result<Outcome> host(const Meeting& meeting, Descriptor listener) {
  Rendezvous::Options options;
  options.ranks = meeting.ranks;
  options.address = meeting.address;
  options.key = meeting.key;
  options.memory_bytes = meeting.memory_bytes;
  options.timeout_ns = meeting.timeout_ns;
  UNISONO_ASSIGN(const std::unique_ptr<Rendezvous> server,
                 Rendezvous::open(options, std::move(listener)));
  Serving serving(*server, meeting);
  UNISONO_TRY(serving.start());
  Meeting local = meeting;
  local.address = server->local_address();
  Result<Outcome> outcome = attend(local);
  serving.end(outcome.ok() ? Error{} : outcome.error());
  if (outcome.ok()) outcome->accepted = server->release_connections();
  return outcome;
}

Result<Outcome> attend_or_host(const Meeting& meeting) {
  const std::int64_t deadline_ns = base::now_ns() + meeting.timeout_ns;
  UNISONO_ASSIGN(ConnectAttempt attempt, attempt_connect(meeting.address, deadline_ns));
  const bool is_there = attempt.socket.valid() || (attempt.busy && base::now_ns() < deadline_ns);
  return is_there ? attend(meeting, std::move(attempt.socket)) : host(meeting);
}

}  // namespace unisono::bootstrap
