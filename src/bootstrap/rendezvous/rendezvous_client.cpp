// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/rendezvous_client.hpp"

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
#include "bootstrap/rendezvous/host_relay.hpp"
#include "bootstrap/rendezvous/message_stream.hpp"
#include "bootstrap/rendezvous/rendezvous.hpp"
#include "memory/memory_file.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;
using base::Status;

// The server measures the same timeout from the first rank's Hello, and its error names the missing
// ranks. So a rank waits this much longer before it returns an error of its own.
constexpr std::int64_t kAnswerMarginNs = base::kSecond;
// Mostly all ranks come at about the same time, and nobody notices this wait.
constexpr std::int64_t kQuietNs = base::kSecond;
constexpr std::int64_t kAskWhyNs = base::kSecond;
constexpr std::int64_t kFirstRetryNs = base::kMillisecond;
constexpr std::int64_t kLastRetryNs = 50 * base::kMillisecond;

void sleep_ns(std::int64_t time_ns) {
  const timespec time{time_ns / base::kSecond, time_ns % base::kSecond};
  nanosleep(&time, nullptr);  // shorter after a signal: the caller reads the clock
}

// One rank's way through the rendezvous.
class RendezvousClient {
 public:
  explicit RendezvousClient(const JoinRequest& request)
      : request_(request),
        key_(wire::key_of(request.key)),
        who_(fmt::format("rank {} of {}", request.rank, request.ranks)),
        server_(request.server),
        address_(request.address),
        failure_(request.failure) {}

  Result<Joined> run(Descriptor connected);

 private:
  struct Reply {
    MessageStream stream;
    Message message;
  };

  // A connection before the deadline. `gone`: the error if no process listens; code ok: try again.
  Result<Descriptor> connect(std::int64_t deadline_ns, const Error& gone) const;
  // Sends Hello and returns the answer: a Welcome or a Redirect. If a connection ends without a
  // proved answer, connects again, for the server may have dropped it for lack of room. With a
  // relay, its ranks are told an error as well.
  Result<Reply> exchange(Descriptor connected, HostRelay* relay);
  Result<Reply> exchange_until(std::int64_t deadline_ns, Descriptor connected, HostRelay* relay);
  // nullopt: the connection has ended, or the answer has no proof.
  Result<std::optional<Message>> try_hello(MessageStream& stream, HostRelay* relay,
                                           std::int64_t deadline_ns);
  Result<std::optional<MessageStream::Received>> send_hello(MessageStream& stream, HostRelay* relay,
                                                            std::int64_t deadline_ns,
                                                            Nonce& nonce) const;
  std::optional<Message> record_unproved_refusal(const Refused& refused);
  Result<Hello> make_hello(const HostRelay* relay) const;
  Result<Descriptor> follow(const Redirect& redirect);
  Result<Joined> join_by(const Redirect& redirect);
  Result<Joined> join_at(Descriptor connected);
  Error ask_why(const Error& failed);
  Result<Joined> complete(MessageStream& stream, const Welcome& welcome) const;
  Result<Joined> complete_as_relay(MessageStream& stream, HostRelay& relay,
                                   const Welcome& welcome) const;
  Status check_ranks(const Welcome& welcome) const;
  Status check_remote(const Welcome& welcome) const;
  Status verify(const Joined& joined) const;
  Error no_answer() const;
  Error rendezvous_ended() const;
  Error not_a_rendezvous() const;

  const JoinRequest& request_;
  wire::Key key_;
  std::string who_;     // for messages: this rank
  std::string server_;  // for messages: the process that serves at
  Address address_;
  Error failure_;                 // why this rank cannot start; code ok: it can
  int lost_connections_ = 0;      // ended without an answer
  std::string unproved_refusal_;  // text of the last refusal without proof
};

namespace {

std::string_view why_not_connected(const ConnectAttempt& attempt) {
  if (attempt.unreachable == EHOSTUNREACH) return "no route to the host";
  if (attempt.unreachable == ENETUNREACH) return "no route to the network";
  return attempt.busy ? "no process accepts connections" : "no process listens";
}

}  // namespace

Result<Descriptor> RendezvousClient::connect(std::int64_t deadline_ns, const Error& gone) const {
  std::int64_t retry_ns = kFirstRetryNs;
  for (;;) {
    UNISONO_ASSIGN(ConnectAttempt attempt, attempt_connect(address_, deadline_ns));
    if (attempt.socket.valid()) return std::move(attempt.socket);
    if (!attempt.busy && gone.code != Code::ok) return gone;
    const std::int64_t left_ns = deadline_ns - base::now_ns();
    if (left_ns <= 0) {
      std::string message = fmt::format(
          "{}: {} at {} after {} (UNISONO_START_TIMEOUT); {} serves the rendezvous, did it start?",
          who_, why_not_connected(attempt), address_text(address_),
          base::format_time_ns(request_.timeout_ns), server_);
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

Error RendezvousClient::no_answer() const {
  const std::string where =
      fmt::format("{}: the rendezvous at {}, served by {},", who_, address_text(address_), server_);
  if (!unproved_refusal_.empty()) {
    return {Code::argument,
            fmt::format("{} did not prove within {} (UNISONO_START_TIMEOUT) that it knows this "
                        "job's key (UNISONO_JOB_KEY). Set the same key for all ranks. If that "
                        "process is of another job, set another UNISONO_RENDEZVOUS. Its answer "
                        "was: {}",
                        where, base::format_time_ns(request_.timeout_ns), unproved_refusal_)};
  }
  std::string message = fmt::format("{} gave no answer within {} (UNISONO_START_TIMEOUT)", where,
                                    base::format_time_ns(request_.timeout_ns));
  if (lost_connections_ > 0) {
    message += fmt::format("; it closed {} {} of this rank without an answer", lost_connections_,
                           lost_connections_ == 1 ? "connection" : "connections");
  }
  return {Code::timeout, std::move(message)};
}

Error RendezvousClient::rendezvous_ended() const {
  return {Code::rank_lost,
          fmt::format("{}: the rendezvous at {}, served by {}, ended before all ranks had joined",
                      who_, address_text(address_), server_)};
}

Error RendezvousClient::not_a_rendezvous() const {
  return {Code::state, fmt::format("{} is no rendezvous", address_text(address_))};
}

Result<Hello> RendezvousClient::make_hello(const HostRelay* relay) const {
  Hello hello;
  hello.kernel = {.id = 1, .cores = 1};  // unless it is known
  UNISONO_ASSIGN(hello.nonce, random_nonce());
  hello.rank = static_cast<std::uint32_t>(request_.rank);
  hello.ranks = static_cast<std::uint32_t>(request_.ranks);
  hello.memory_bytes = request_.memory_bytes;
  hello.memory_layout = request_.memory_layout;
  hello.endpoint = request_.endpoint;
  hello.max_payload = request_.max_payload;
  hello.settings = request_.settings;
  hello.warnings = request_.warnings;
  hello.failure = failure_.code;
  hello.failure_text = failure_.message;
  // Without them it cannot join, for instance for lack of a descriptor. All others hear of it.
  const Result<HostId> host = own_host_id();
  const Result<Kernel> kernel = own_kernel();
  if (host.ok() && kernel.ok()) {
    hello.host = *host;
    hello.kernel = *kernel;
  } else if (failure_.code == Code::ok) {
    const Error& why = host.ok() ? kernel.error() : host.error();
    hello.failure = why.code;
    hello.failure_text = why.message;
  }
  if (relay != nullptr) hello.relay_socket = relay->relay_socket();
  return hello;
}

Result<std::optional<MessageStream::Received>> RendezvousClient::send_hello(
    MessageStream& stream, HostRelay* relay, std::int64_t deadline_ns, Nonce& nonce) const {
  if (address_.kind != Address::Kind::tcp) {
    UNISONO_ASSIGN(const Peer peer, peer_of(stream.socket()));
    if (peer.uid != geteuid()) {
      return Error{Code::argument,
                   fmt::format("{}: {} belongs to user {}, this process to user {}: not our "
                               "rendezvous; give the job another name (UNISONO_RENDEZVOUS)",
                               who_, address_text(address_), peer.uid, geteuid())};
    }
  }
  UNISONO_ASSIGN(const std::optional<MessageStream::Received> greeting,
                 stream.receive(deadline_ns));
  if (!greeting) return std::optional<MessageStream::Received>();
  const Challenge* challenge = std::get_if<Challenge>(&greeting->message);
  if (challenge == nullptr) return not_a_rendezvous();
  UNISONO_ASSIGN(const Hello hello, make_hello(relay));
  nonce = hello.nonce;
  std::string frame = encode(hello);
  sign(frame, key_, challenge->nonce);
  UNISONO_TRY(stream.send(frame));
  return relay != nullptr ? relay->await_answer(stream, challenge->nonce, nonce, deadline_ns)
                          : stream.receive(deadline_ns);
}

// The rank tries again: neither a process that has taken the port nor one between the hosts can
// keep it out.
std::optional<Message> RendezvousClient::record_unproved_refusal(const Refused& refused) {
  if (unproved_refusal_.empty()) {
    base::log(base::LogLevel::warn, "bootstrap",
              "{}: the process at {} refuses this rank, but does not prove that it knows this "
              "job's key (UNISONO_JOB_KEY); trying again. Its answer was: {}",
              who_, address_text(address_), refused.text);
  }
  unproved_refusal_ = refused.text;
  return {};
}

Result<std::optional<Message>> RendezvousClient::try_hello(MessageStream& stream, HostRelay* relay,
                                                           std::int64_t deadline_ns) {
  Nonce nonce{};
  UNISONO_ASSIGN(std::optional<MessageStream::Received> answer,
                 send_hello(stream, relay, deadline_ns, nonce));
  if (!answer) {
    if (stream.closed()) ++lost_connections_;
    return std::optional<Message>();
  }
  const bool proved = signature_is_right(answer->frame, key_, nonce);
  if (const Refused* refused = std::get_if<Refused>(&answer->message)) {
    // The kernel reports the user at a Unix socket, so a refusal there needs no proof.
    if (proved) return Error{refused->code, refused->text};
    if (address_.kind == Address::Kind::tcp) return record_unproved_refusal(*refused);
    return Error{refused->code,
                 fmt::format("{}: the rendezvous at {}, served by {}, refuses this rank: {}", who_,
                             address_text(address_), server_, refused->text)};
  }
  if (!proved) {
    return Error{Code::argument, fmt::format("{} does not know this job's key (UNISONO_JOB_KEY): "
                                             "not our rendezvous",
                                             address_text(address_))};
  }
  return std::optional(std::move(answer->message));
}

Result<RendezvousClient::Reply> RendezvousClient::exchange(Descriptor connected, HostRelay* relay) {
  const std::int64_t deadline_ns = base::now_ns() + request_.timeout_ns + kAnswerMarginNs;
  Result<Reply> reply = exchange_until(deadline_ns, std::move(connected), relay);
  if (!reply.ok() && relay != nullptr) relay->refuse_all(reply.error());
  return reply;
}

Result<RendezvousClient::Reply> RendezvousClient::exchange_until(std::int64_t deadline_ns,
                                                                 Descriptor connected,
                                                                 HostRelay* relay) {
  lost_connections_ = 0;
  unproved_refusal_.clear();
  std::int64_t retry_ns = kFirstRetryNs;
  for (;;) {
    MessageStream stream(std::move(connected));
    UNISONO_ASSIGN(std::optional<Message> message, try_hello(stream, relay, deadline_ns));
    if (message) return Reply{std::move(stream), std::move(*message)};
    const std::int64_t left_ns = deadline_ns - base::now_ns();
    if (left_ns <= 0) return no_answer();
    sleep_ns(std::min(retry_ns, left_ns));
    retry_ns = std::min(2 * retry_ns, kLastRetryNs);
    UNISONO_ASSIGN(connected, connect(deadline_ns, rendezvous_ended()));
  }
}

Result<Descriptor> RendezvousClient::follow(const Redirect& redirect) {
  UNISONO_ASSIGN(const HostId host, own_host_id());
  if (host != redirect.host) {
    return Error{Code::state,
                 fmt::format("{}: the rendezvous at {} redirected it to a socket of another host",
                             who_, address_text(address_))};
  }
  address_ = {Address::Kind::unix_name, redirect.name, 0};
  if (redirect.relay != kNoRelay) server_ = fmt::format("rank {}", redirect.relay);
  // The relay has listened there since before its own Hello.
  return connect(base::now_ns() + request_.timeout_ns, rendezvous_ended());
}

Result<Joined> RendezvousClient::run(Descriptor connected) {
  if (!connected.valid()) {
    UNISONO_ASSIGN(connected, connect(base::now_ns() + request_.timeout_ns, Error{}));
  }
  if (address_.kind == Address::Kind::tcp) {
    UNISONO_ASSIGN(const std::unique_ptr<HostRelay> relay, HostRelay::open(key_, request_.ranks));
    UNISONO_ASSIGN(Reply reply, exchange(std::move(connected), relay.get()));
    if (const Welcome* welcome = std::get_if<Welcome>(&reply.message)) {
      return complete_as_relay(reply.stream, *relay, *welcome);
    }
    const Redirect* redirect = std::get_if<Redirect>(&reply.message);
    if (redirect == nullptr) return not_a_rendezvous();
    Result<Joined> joined = join_by(*redirect);
    return joined.ok() ? std::move(joined) : Result<Joined>(ask_why(joined.error()));
  }
  return join_at(std::move(connected));
}

Result<Joined> RendezvousClient::join_by(const Redirect& redirect) {
  UNISONO_ASSIGN(Descriptor connected, follow(redirect));
  return join_at(std::move(connected));
}

// At a Unix socket.
Result<Joined> RendezvousClient::join_at(Descriptor connected) {
  UNISONO_ASSIGN(Reply reply, exchange(std::move(connected), nullptr));
  const Welcome* welcome = std::get_if<Welcome>(&reply.message);
  if (welcome == nullptr) return not_a_rendezvous();
  return complete(reply.stream, *welcome);
}

// A relay whose job cannot start ends, and tells only those that it has heard by then. The
// rendezvous knows the reason if it is still there. It is asked by all, because it waits for ranks
// that may not have heard the reason.
Error RendezvousClient::ask_why(const Error& failed) {
  address_ = request_.address;
  server_ = request_.server;
  failure_ = failed;
  const std::int64_t deadline_ns = base::now_ns() + kAskWhyNs;
  Result<ConnectAttempt> attempt = attempt_connect(address_, deadline_ns);
  const Result<std::unique_ptr<HostRelay>> relay = HostRelay::open(key_, request_.ranks);
  if (!attempt.ok() || !attempt->socket.valid() || !relay.ok()) return failed;
  const Result<Reply> reply = exchange_until(deadline_ns, std::move(attempt->socket), relay->get());
  const bool tells =
      !reply.ok() && reply.error().code != Code::timeout && reply.error().code != Code::rank_lost;
  return tells && failed.code == Code::rank_lost ? reply.error() : failed;
}

Status RendezvousClient::check_ranks(const Welcome& welcome) const {
  if (welcome.members.size() == static_cast<std::size_t>(request_.ranks)) return base::success();
  return Error{Code::state, fmt::format("the rendezvous has {} ranks, the launcher {}",
                                        welcome.members.size(), request_.ranks)};
}

Result<Joined> RendezvousClient::complete(MessageStream& stream, const Welcome& welcome) const {
  UNISONO_TRY(check_ranks(welcome));
  Joined joined;
  joined.welcome = welcome;
  joined.memory = stream.take_attached();
  UNISONO_TRY(verify(joined));
  joined.connection = stream.take_socket();
  return joined;
}

Result<Joined> RendezvousClient::complete_as_relay(MessageStream& stream, HostRelay& relay,
                                                   const Welcome& welcome) const {
  const Status fits = check_remote(welcome);
  Result<HostRelay::PassedOn> passed =
      fits.ok() ? relay.pass_on(welcome, request_.rank) : Result<HostRelay::PassedOn>(fits.error());
  if (!passed.ok()) {
    relay.refuse_all(passed.error());
    return passed.error();
  }
  Joined joined;
  joined.welcome = std::move(passed->welcome);
  joined.memory = std::move(passed->memory);
  joined.connection = stream.take_socket();
  joined.accepted = std::move(passed->connections);
  return joined;
}

Status RendezvousClient::check_remote(const Welcome& welcome) const {
  UNISONO_TRY(check_ranks(welcome));
  const std::uint32_t own = welcome.members[static_cast<std::size_t>(request_.rank)].pid;
  if (own == 0) return base::success();
  return Error{Code::state, fmt::format("{}: the rendezvous at {} is on another host, but reports "
                                        "pid {} for it",
                                        who_, address_text(address_), own)};
}

Status RendezvousClient::verify(const Joined& joined) const {
  const std::uint32_t own = joined.welcome.members[static_cast<std::size_t>(request_.rank)].pid;
  UNISONO_TRY(memory::verify_memory(joined.memory, joined.welcome.memory_bytes));
  if (own == static_cast<std::uint32_t>(getpid())) return base::success();
  return Error{Code::unsupported,
               fmt::format("{} has pid {} here and pid {} at the rendezvous: the ranks on a host "
                           "must share one pid namespace",
                           who_, getpid(), own)};
}

// Serves a rendezvous in a thread until this rank has joined or failed. Until then all ranks, this
// one included, are told an error of the start, also if they connect after it. An error of this
// rank alone is told to the others. If some rank has said that it cannot start, the thread serves
// on. It ends when all ranks have heard it, also late ones, or at the deadline.
class RendezvousThread {
 public:
  RendezvousThread(Rendezvous& server, const JoinRequest& request)
      : server_(server), request_(request) {}

  Status start();
  void end(const Error& own_error);

 private:
  void serve();
  void tell_late_ranks();

  Rendezvous& server_;
  const JoinRequest& request_;
  Descriptor ending_;  // wakes the thread at the end
  std::atomic<bool> ended_ = false;
  Error own_error_;  // before ended_
  std::int64_t deadline_ns_ = 0;
  std::thread thread_;
};

Status RendezvousThread::start() {
  deadline_ns_ = base::now_ns() + request_.timeout_ns;
  server_.end_at(deadline_ns_);
  ending_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!ending_.valid()) return base::system_error("eventfd", errno);
  Result<std::thread> started = base::start_thread("unisono-serve", [this] { serve(); });
  if (!started.ok()) {
    return Error{started.error().code,
                 fmt::format("rank {} of {} cannot start a thread for the rendezvous: {}",
                             request_.rank, request_.ranks, started.error().message)};
  }
  thread_ = std::move(*started);
  return base::success();
}

void RendezvousThread::end(const Error& own_error) {
  own_error_ = own_error;
  ended_ = true;
  eventfd_write(ending_.get(), 1);
  thread_.join();
}

void RendezvousThread::serve() {
  for (;;) {
    std::array<pollfd, 2> waiting{{{ending_.get(), POLLIN, 0}, {server_.descriptor(), POLLIN, 0}}};
    const bool gathering = server_.state() == Rendezvous::State::gathering;
    const int timeout_ms = gathering ? base::poll_timeout_ms(server_.next_deadline_ns()) : -1;
    poll(waiting.data(), waiting.size(), timeout_ms);  // a failure counts as no event
    server_.step();
    if (!ended_) continue;
    if (own_error_.code != Code::ok) server_.give_up(own_error_);
    return tell_late_ranks();
  }
}

void RendezvousThread::tell_late_ranks() {
  std::int64_t logs_ns = base::now_ns() + kQuietNs;
  while (server_.still_tells_failure() && base::now_ns() < deadline_ns_) {
    if (base::now_ns() >= logs_ns) {
      base::log(base::LogLevel::warn, "bootstrap",
                "the job cannot start; rank {} waits for ranks that do not know it yet "
                "(UNISONO_START_TIMEOUT is {}): {}",
                request_.rank, base::format_time_ns(request_.timeout_ns), own_error_.message);
      logs_ns = deadline_ns_;
    }
    pollfd waiting{server_.descriptor(), POLLIN, 0};
    poll(&waiting, 1, base::poll_timeout_ms(std::min(logs_ns, deadline_ns_)));
    server_.step();
  }
}

}  // namespace

Result<Joined> join_rendezvous(const JoinRequest& request, Descriptor connected) {
  return RendezvousClient(request).run(std::move(connected));
}

Result<Joined> serve_and_join(const JoinRequest& request, Descriptor listener) {
  Rendezvous::Options options;
  options.ranks = request.ranks;
  options.address = request.address;
  options.key = request.key;
  options.memory_bytes = request.memory_bytes;
  options.timeout_ns = request.timeout_ns;
  UNISONO_ASSIGN(const std::unique_ptr<Rendezvous> server,
                 Rendezvous::open(options, std::move(listener)));
  RendezvousThread serving(*server, request);
  UNISONO_TRY(serving.start());
  JoinRequest local = request;
  local.address = server->local_address();
  Result<Joined> joined = join_rendezvous(local);
  serving.end(joined.ok() ? Error{} : joined.error());
  if (joined.ok()) joined->accepted = server->release_connections();
  return joined;
}

Result<Joined> join_or_serve(const JoinRequest& request) {
  const std::int64_t deadline_ns = base::now_ns() + request.timeout_ns;
  UNISONO_ASSIGN(ConnectAttempt attempt, attempt_connect(request.address, deadline_ns));
  const bool is_there = attempt.socket.valid() || (attempt.busy && base::now_ns() < deadline_ns);
  return is_there ? join_rendezvous(request, std::move(attempt.socket)) : serve_and_join(request);
}

}  // namespace unisono::bootstrap
