// SPDX-License-Identifier: BSD-3-Clause
#include "group/bootstrap/meeting.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "base/thread.hpp"
#include "group/bootstrap/gate.hpp"
#include "group/bootstrap/line.hpp"
#include "group/bootstrap/memory.hpp"
#include "group/bootstrap/rendezvous.hpp"

namespace unisono::group {
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
  Result<Descriptor> reach() const;
  // Says Hello and gives the answer: a Welcome or a Redirect. What is an error is told to those who
  // came by the gate, if there is one.
  Result<Message> ask(Line& line, Gate* gate) const;
  Result<Line::Arrival> say_hello(Line& line, Gate* gate, Nonce& nonce) const;
  Result<Hello> own_hello(const Gate* gate) const;
  Result<Descriptor> follow(const Redirect& redirect);
  Result<Outcome> take_place(Line& line, const Welcome& welcome) const;
  Result<Outcome> take_place_as_gate(Line& line, Gate& gate, const Welcome& welcome) const;
  Status check_ranks(const Welcome& welcome) const;
  Status check_from_afar(const Welcome& welcome) const;
  Status verify(const Outcome& outcome) const;
  Error no_answer(bool ended) const;
  Error no_rendezvous() const;

  const Meeting& meeting_;
  wire::Key key_;
  std::string who_;     // for people: this rank
  std::string server_;  // for people: who listens at
  Address address_;
};

Result<Descriptor> Attending::reach() const {
  const std::int64_t deadline_ns = base::now_ns() + meeting_.timeout_ns;
  std::int64_t retry_ns = kFirstRetryNs;
  for (;;) {
    UNISONO_ASSIGN(std::optional<Descriptor> socket, try_connect(address_, deadline_ns));
    if (socket) return std::move(*socket);
    const std::int64_t left_ns = deadline_ns - base::now_ns();
    if (left_ns <= 0) {
      return Error{
          Code::timeout,
          fmt::format("{}: nobody listens at {} after {} (UNISONO_START_TIMEOUT); {} hosts the "
                      "rendezvous, did it start?",
                      who_, address_text(address_), base::format_time_ns(meeting_.timeout_ns),
                      server_)};
    }
    sleep_ns(std::min(retry_ns, left_ns));
    retry_ns = std::min(2 * retry_ns, kLastRetryNs);
  }
}

Error Attending::no_answer(bool ended) const {
  const std::string where = fmt::format("{}: the rendezvous at {}, which {} hosts,", who_,
                                        address_text(address_), server_);
  if (ended) {
    return {Code::rank_lost, fmt::format("{} ended before all ranks had joined", where)};
  }
  return {Code::timeout, fmt::format("{} gave no answer within {} (UNISONO_START_TIMEOUT)", where,
                                     base::format_time_ns(meeting_.timeout_ns))};
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

Result<Line::Arrival> Attending::say_hello(Line& line, Gate* gate, Nonce& nonce) const {
  if (address_.kind == Address::Kind::unix_name) {
    UNISONO_ASSIGN(const Peer peer, peer_of(line.socket()));
    if (peer.uid != geteuid()) {
      return Error{Code::argument,
                   fmt::format("{} belongs to user {}, this process to user {}: not "
                               "our rendezvous",
                               address_text(address_), peer.uid, geteuid())};
    }
  }
  const std::int64_t deadline_ns = base::now_ns() + meeting_.timeout_ns + kAnswerMarginNs;
  UNISONO_ASSIGN(const std::optional<Line::Arrival> greeting, line.receive(deadline_ns));
  if (!greeting) return no_answer(line.closed());
  const Challenge* challenge = std::get_if<Challenge>(&greeting->message);
  if (challenge == nullptr) return no_rendezvous();
  UNISONO_ASSIGN(const Hello hello, own_hello(gate));
  nonce = hello.nonce;
  std::string frame = encode(hello);
  sign(frame, key_, challenge->nonce);
  UNISONO_TRY(line.send(frame));
  UNISONO_ASSIGN(std::optional<Line::Arrival> answer,
                 gate != nullptr ? gate->await_answer(line, challenge->nonce, deadline_ns)
                                 : line.receive(deadline_ns));
  if (!answer) return no_answer(line.closed());
  return std::move(*answer);
}

Result<Message> Attending::ask(Line& line, Gate* gate) const {
  Nonce nonce{};
  Result<Line::Arrival> answer = say_hello(line, gate, nonce);
  Error error = answer.ok() ? Error{} : answer.error();
  if (answer.ok()) {
    if (const Refused* refused = std::get_if<Refused>(&answer->message)) {
      error = {refused->code, refused->text};
    } else if (!signature_is_right(answer->frame, key_, nonce)) {
      error = {Code::argument, fmt::format("{} does not know this job's key (UNISONO_JOB_KEY): "
                                           "not our rendezvous",
                                           address_text(address_))};
    }
  }
  if (error.code == Code::ok) return std::move(answer->message);
  if (gate != nullptr) gate->refuse_all(error);
  return error;
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
  UNISONO_ASSIGN(std::optional<Descriptor> socket, try_connect(address_, base::now_ns()));
  if (!socket) return no_answer(true);
  return std::move(*socket);
}

Result<Outcome> Attending::run(Descriptor connected) {
  if (!connected.valid()) {
    UNISONO_ASSIGN(connected, reach());
  }
  if (address_.kind == Address::Kind::tcp) {
    UNISONO_ASSIGN(const std::unique_ptr<Gate> gate, Gate::open(key_, meeting_.ranks));
    Line line(std::move(connected));
    UNISONO_ASSIGN(const Message answer, ask(line, gate.get()));
    if (const Welcome* welcome = std::get_if<Welcome>(&answer)) {
      return take_place_as_gate(line, *gate, *welcome);
    }
    const Redirect* redirect = std::get_if<Redirect>(&answer);
    if (redirect == nullptr) return no_rendezvous();
    UNISONO_ASSIGN(connected, follow(*redirect));
  }
  Line line(std::move(connected));
  UNISONO_ASSIGN(const Message answer, ask(line, nullptr));
  const Welcome* welcome = std::get_if<Welcome>(&answer);
  if (welcome == nullptr) return no_rendezvous();
  return take_place(line, *welcome);
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
  outcome.channel = line.take_socket();
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
  outcome.channel = line.take_socket();
  outcome.hosted = std::move(handed->guests);
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
  UNISONO_TRY(verify_memory(outcome.memory, outcome.welcome.memory_bytes));
  if (own == static_cast<std::uint32_t>(getpid())) return base::success();
  return Error{Code::unsupported,
               fmt::format("{} has pid {} here and pid {} at the rendezvous: the ranks on a host "
                           "must share one pid namespace",
                           who_, getpid(), own)};
}

// The ranks, this one included, are told the outcome. What fails the start may come before this
// rank's own Hello; then it is told as all that come late are.
void serve(Rendezvous& server, std::int64_t deadline_ns, const std::atomic<bool>& attended) {
  constexpr int kTurnMs = 10;
  if (server.serve(deadline_ns).ok()) return;
  while (!attended) {
    pollfd waiting{server.descriptor(), POLLIN, 0};
    poll(&waiting, 1, kTurnMs);
    server.step();
  }
}

Result<std::thread> serve_in_thread(Rendezvous& server, const Meeting& meeting,
                                    const std::atomic<bool>& attended) {
  const std::int64_t deadline_ns = base::now_ns() + meeting.timeout_ns;
  Result<std::thread> serving = base::start_thread(
      "unisono-meeting",
      [&server, deadline_ns, &attended] { serve(server, deadline_ns, attended); });
  if (serving.ok()) return serving;
  return Error{serving.error().code,
               fmt::format("rank {} of {} cannot start a thread for the rendezvous: {}",
                           meeting.rank, meeting.ranks, serving.error().message)};
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
  std::atomic<bool> attended = false;
  UNISONO_ASSIGN(std::thread serving, serve_in_thread(*server, meeting, attended));
  Meeting local = meeting;
  local.address = server->local_address();
  Result<Outcome> outcome = attend(local);
  attended = true;
  serving.join();
  if (outcome.ok()) outcome->hosted = server->release_connections();
  return outcome;
}

Result<Outcome> attend_or_host(const Meeting& meeting) {
  UNISONO_ASSIGN(std::optional<Descriptor> socket,
                 try_connect(meeting.address, base::now_ns() + meeting.timeout_ns));
  return socket ? attend(meeting, std::move(*socket)) : host(meeting);
}

}  // namespace unisono::group
