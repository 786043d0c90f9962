// SPDX-License-Identifier: BSD-3-Clause
#include "group/bootstrap/meeting.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include "base/clock.hpp"
#include "base/text.hpp"
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
  explicit Attending(const Meeting& meeting) : meeting_(meeting), key_(wire::key_of(meeting.key)) {}

  Result<Outcome> run(Descriptor connected) const;

 private:
  Result<Descriptor> reach(const Address& address) const;
  // Says Hello and gives the answer.
  Result<Line::Arrival> ask(Line& line, const Address& address, Nonce& nonce) const;
  Result<std::string> hello_frame(const Nonce& challenge, Nonce& nonce) const;
  Result<Address> follow(const Redirect& redirect, Descriptor& connected) const;
  Result<Outcome> take_place(Line& line, const Address& address, const Welcome& welcome) const;
  Status verify(const Outcome& outcome) const;
  Error no_answer(bool ended, const Address& address) const;

  const Meeting& meeting_;
  wire::Key key_;
};

Result<Descriptor> Attending::reach(const Address& address) const {
  const std::int64_t deadline_ns = base::now_ns() + meeting_.timeout_ns;
  std::int64_t retry_ns = kFirstRetryNs;
  for (;;) {
    UNISONO_ASSIGN(std::optional<Descriptor> socket, try_connect(address, deadline_ns));
    if (socket) return std::move(*socket);
    const std::int64_t left_ns = deadline_ns - base::now_ns();
    if (left_ns <= 0) {
      return Error{
          Code::timeout,
          fmt::format("{}: nobody listens at {} after {} (UNISONO_START_TIMEOUT); {} hosts the "
                      "rendezvous, did it start?",
                      meeting_.who, address_text(address),
                      base::format_time_ns(meeting_.timeout_ns), meeting_.server)};
    }
    sleep_ns(std::min(retry_ns, left_ns));
    retry_ns = std::min(2 * retry_ns, kLastRetryNs);
  }
}

Error Attending::no_answer(bool ended, const Address& address) const {
  const std::string where = fmt::format("{}: the rendezvous at {}, which {} hosts,", meeting_.who,
                                        address_text(address), meeting_.server);
  if (ended) {
    return {Code::rank_lost, fmt::format("{} ended before all ranks had joined", where)};
  }
  return {Code::timeout, fmt::format("{} gave no answer within {} (UNISONO_START_TIMEOUT)", where,
                                     base::format_time_ns(meeting_.timeout_ns))};
}

Result<std::string> Attending::hello_frame(const Nonce& challenge, Nonce& nonce) const {
  Hello hello;
  UNISONO_ASSIGN(hello.nonce, random_nonce());
  UNISONO_ASSIGN(hello.host, own_host_id());
  hello.rank = static_cast<std::uint32_t>(meeting_.rank);
  hello.ranks = static_cast<std::uint32_t>(meeting_.ranks);
  hello.memory_bytes = meeting_.memory_bytes;
  hello.memory_layout = meeting_.memory_layout;
  hello.endpoint = meeting_.endpoint;
  hello.max_payload = meeting_.max_payload;
  nonce = hello.nonce;
  std::string frame = encode(hello);
  sign(frame, key_, challenge);
  return frame;
}

Result<Line::Arrival> Attending::ask(Line& line, const Address& address, Nonce& nonce) const {
  if (address.kind == Address::Kind::unix_name) {
    UNISONO_ASSIGN(const Peer peer, peer_of(line.socket()));
    if (peer.uid != geteuid()) {
      return Error{Code::argument,
                   fmt::format("{} belongs to user {}, this process to user {}: not "
                               "our rendezvous",
                               address_text(address), peer.uid, geteuid())};
    }
  }
  const std::int64_t deadline_ns = base::now_ns() + meeting_.timeout_ns + kAnswerMarginNs;
  UNISONO_ASSIGN(const std::optional<Line::Arrival> greeting, line.receive(deadline_ns));
  if (!greeting) return no_answer(line.closed(), address);
  const Challenge* challenge = std::get_if<Challenge>(&greeting->message);
  if (challenge == nullptr) {
    return Error{Code::state, fmt::format("{} is no rendezvous", address_text(address))};
  }
  UNISONO_ASSIGN(const std::string frame, hello_frame(challenge->nonce, nonce));
  UNISONO_TRY(line.send(frame));
  UNISONO_ASSIGN(std::optional<Line::Arrival> answer, line.receive(deadline_ns));
  if (!answer) return no_answer(line.closed(), address);
  return std::move(*answer);
}

Result<Address> Attending::follow(const Redirect& redirect, Descriptor& connected) const {
  UNISONO_ASSIGN(const HostId host, own_host_id());
  if (host != redirect.host) {
    return Error{Code::state,
                 fmt::format("{}: the rendezvous at {} sent it to a socket of another host",
                             meeting_.who, address_text(meeting_.address))};
  }
  const Address local{Address::Kind::unix_name, redirect.name, 0};
  // It listened there before it said so.
  UNISONO_ASSIGN(std::optional<Descriptor> socket, try_connect(local, base::now_ns()));
  if (!socket) return no_answer(true, local);
  connected = std::move(*socket);
  return local;
}

Result<Outcome> Attending::run(Descriptor connected) const {
  Address address = meeting_.address;
  if (!connected.valid()) {
    UNISONO_ASSIGN(connected, reach(address));
  }
  // The second turn is for a Redirect.
  for (int turn = 0; turn < 2; ++turn) {
    Line line(std::move(connected));
    Nonce nonce{};
    UNISONO_ASSIGN(const Line::Arrival answer, ask(line, address, nonce));
    if (const Refused* refused = std::get_if<Refused>(&answer.message)) {
      return Error{refused->code, refused->text};
    }
    if (!signature_is_right(answer.frame, key_, nonce)) {
      return Error{Code::argument, fmt::format("{} does not know this job's key (UNISONO_JOB_KEY): "
                                               "not our rendezvous",
                                               address_text(address))};
    }
    if (const Welcome* welcome = std::get_if<Welcome>(&answer.message)) {
      return take_place(line, address, *welcome);
    }
    const Redirect* redirect = std::get_if<Redirect>(&answer.message);
    if (redirect == nullptr || address.kind != Address::Kind::tcp) break;
    UNISONO_ASSIGN(address, follow(*redirect, connected));
  }
  return Error{Code::state, fmt::format("{} is no rendezvous", address_text(address))};
}

Result<Outcome> Attending::take_place(Line& line, const Address& address,
                                      const Welcome& welcome) const {
  if (welcome.places.size() != static_cast<std::size_t>(meeting_.ranks)) {
    return Error{Code::state, fmt::format("the rendezvous speaks of {} ranks, the launcher of {}",
                                          welcome.places.size(), meeting_.ranks)};
  }
  Outcome outcome;
  outcome.welcome = welcome;
  outcome.on_host = address.kind == Address::Kind::unix_name;
  outcome.memory = line.take_attached();
  UNISONO_TRY(verify(outcome));
  outcome.channel = line.take_socket();
  return outcome;
}

Status Attending::verify(const Outcome& outcome) const {
  const std::uint32_t own = outcome.welcome.places[static_cast<std::size_t>(meeting_.rank)].pid;
  if (!outcome.on_host) {
    if (own == 0) return base::success();
    return Error{Code::state, fmt::format("{}: the rendezvous at {} is on another host, but speaks "
                                          "of pid {}",
                                          meeting_.who, address_text(meeting_.address), own)};
  }
  UNISONO_TRY(verify_memory(outcome.memory, outcome.welcome.memory_bytes));
  if (own == static_cast<std::uint32_t>(getpid())) return base::success();
  return Error{Code::unsupported,
               fmt::format("{} has pid {} here and pid {} at the rendezvous: the ranks on a host "
                           "must share one pid namespace",
                           meeting_.who, getpid(), own)};
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
  // The application's signal handlers are not to run in it.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const std::int64_t deadline_ns = base::now_ns() + meeting.timeout_ns;
  Result<std::thread> serving = Error{Code::resources, ""};
  try {
    serving =
        std::thread([&server, deadline_ns, &attended] { serve(server, deadline_ns, attended); });
  } catch (const std::system_error& failure) {
    serving = Error{Code::resources, fmt::format("{} cannot start a thread for the rendezvous: {}",
                                                 meeting.who, failure.what())};
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return serving;
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
  options.names = meeting.names;
  UNISONO_ASSIGN(const std::unique_ptr<Rendezvous> server,
                 Rendezvous::open(options, std::move(listener)));
  std::atomic<bool> attended = false;
  UNISONO_ASSIGN(std::thread serving, serve_in_thread(*server, meeting, attended));
  Result<Outcome> outcome = attend(meeting);
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
