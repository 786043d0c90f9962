// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/rendezvous_client.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "bootstrap/rendezvous/host_relay.hpp"
#include "bootstrap/rendezvous/message_stream.hpp"
#include "bootstrap/serving_rank.hpp"
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
constexpr std::int64_t kAskWhyNs = base::kSecond;
constexpr std::int64_t kFirstRetryNs = base::kMillisecond;
constexpr std::int64_t kLastRetryNs = 50 * base::kMillisecond;
// A server that could accept no more ranks listens again to say so (serving_rank.cpp).
constexpr std::int64_t kReopenNs = base::kSecond / 5;

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
  // After an error of run(): tells it to those who may wait for this rank.
  void withdraw(const Error& error);

 private:
  // A connection before the deadline. `gone`: the error if no process listens for a while; code ok:
  // try again.
  Result<Descriptor> connect(std::int64_t deadline_ns, const Error& gone);
  bool connect_to_notice(Descriptor& socket);
  // Sends Hello and returns the answer: a Welcome or a Redirect. If a connection ends without a
  // proved answer, connects again, for the server may have dropped it for lack of room.
  Result<Message> exchange(Descriptor connected);
  Result<Message> exchange_until(std::int64_t deadline_ns, Descriptor connected);
  // nullopt: the connection has ended, or the answer has no proof.
  Result<std::optional<Message>> try_hello(std::int64_t deadline_ns);
  Result<std::optional<MessageStream::Received>> send_hello(std::int64_t deadline_ns);
  std::optional<Message> record_unproved_refusal(const Refused& refused);
  Result<Hello> make_hello() const;
  Result<Descriptor> follow(const Redirect& redirect);
  Result<Joined> join_by(const Redirect& redirect);
  Result<Joined> join_at(Descriptor connected);
  Error ask_why(const Error& failed);
  Result<Joined> complete(const Welcome& welcome);
  Result<Joined> complete_as_relay(const Welcome& welcome);
  std::unique_ptr<StartConnections> connections(const Welcome& welcome);
  Status check_ranks(const Welcome& welcome) const;
  Status check_remote(const Welcome& welcome) const;
  Status verify(const base::Descriptor& memory, const Welcome& welcome) const;
  Error no_answer() const;
  Error rendezvous_ended() const;
  Error not_a_rendezvous() const;

  const JoinRequest& request_;
  wire::Key key_;
  std::string who_;     // for messages: this rank
  std::string server_;  // for messages: the process that serves at
  Address address_;
  Error failure_;  // why this rank cannot start; code ok: it can
  MessageStream stream_{Descriptor()};
  std::unique_ptr<HostRelay> relay_;  // null: this rank cannot become a relay
  Nonce challenge_{};                 // of the peer of `stream_`
  Nonce hello_{};                     // the last one that was sent there; zeros: none
  bool is_over_ = false;              // the peer has refused the rank, or is of no rank of the job
  bool has_said_hello_ = false;       // at any time
  int lost_connections_ = 0;          // ended without an answer
  std::string unproved_refusal_;      // text of the last refusal without proof
};

namespace {

std::string_view why_not_connected(const ConnectAttempt& attempt) {
  if (attempt.unreachable == EHOSTUNREACH) return "no route to the host";
  if (attempt.unreachable == ENETUNREACH) return "no route to the network";
  return attempt.busy ? "no process accepts connections" : "no process listens";
}

}  // namespace

// Where rank 0 of this host tells that it cannot serve the rendezvous.
bool RendezvousClient::connect_to_notice(Descriptor& socket) {
  if (address_.kind != Address::Kind::tcp || request_.rank == 0) return false;
  const Address notice = notice_address(request_);
  Result<ConnectAttempt> attempt = attempt_connect(notice, base::now_ns());
  if (!attempt.ok() || !attempt->socket.valid() || !is_of_own_user(attempt->socket)) return false;
  address_ = notice;
  server_ = "rank 0";
  socket = std::move(attempt->socket);
  return true;
}

Result<Descriptor> RendezvousClient::connect(std::int64_t deadline_ns, const Error& gone) {
  std::int64_t retry_ns = kFirstRetryNs;
  // Rank 0 would wait for itself.
  const std::int64_t reopened_ns = base::now_ns() + (request_.rank == 0 ? 0 : kReopenNs);
  for (;;) {
    UNISONO_ASSIGN(ConnectAttempt attempt, attempt_connect(address_, deadline_ns));
    if (attempt.socket.valid()) return std::move(attempt.socket);
    const bool is_gone = !attempt.busy && base::now_ns() >= reopened_ns;
    if (is_gone && gone.code != Code::ok) return gone;
    if (connect_to_notice(attempt.socket)) return std::move(attempt.socket);
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
      if (address_.kind != Address::Kind::tcp) {
        message += " A rank in another network namespace does not reach it.";
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

Result<Hello> RendezvousClient::make_hello() const {
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
  if (relay_ != nullptr) hello.relay_socket = relay_->relay_socket();
  return hello;
}

Result<std::optional<MessageStream::Received>> RendezvousClient::send_hello(
    std::int64_t deadline_ns) {
  if (address_.kind != Address::Kind::tcp) {
    UNISONO_ASSIGN(const Peer peer, peer_of(stream_.socket()));
    if (peer.uid != geteuid()) {
      return Error{Code::argument,
                   fmt::format("{}: {} belongs to user {}, this process to user {}: not our "
                               "rendezvous; give the job another name (UNISONO_RENDEZVOUS)",
                               who_, address_text(address_), peer.uid, geteuid())};
    }
  }
  UNISONO_ASSIGN(const std::optional<MessageStream::Received> greeting,
                 stream_.receive(deadline_ns));
  if (!greeting) return std::optional<MessageStream::Received>();
  const Challenge* challenge = std::get_if<Challenge>(&greeting->message);
  if (challenge == nullptr) return not_a_rendezvous();
  UNISONO_ASSIGN(const Hello hello, make_hello());
  std::string frame = encode(hello);
  sign(frame, key_, challenge->nonce);
  UNISONO_TRY(stream_.send(frame));
  challenge_ = challenge->nonce;
  hello_ = hello.nonce;
  has_said_hello_ = true;
  return relay_ != nullptr ? relay_->await_answer(stream_, challenge_, hello_, deadline_ns)
                           : stream_.receive(deadline_ns);
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

Result<std::optional<Message>> RendezvousClient::try_hello(std::int64_t deadline_ns) {
  UNISONO_ASSIGN(std::optional<MessageStream::Received> answer, send_hello(deadline_ns));
  if (!answer) {
    if (stream_.closed()) ++lost_connections_;
    return std::optional<Message>();
  }
  const bool proved = signature_is_right(answer->frame, key_, hello_);
  if (const Refused* refused = std::get_if<Refused>(&answer->message)) {
    // The kernel reports the user at a Unix socket, so a refusal there needs no proof.
    is_over_ = true;
    if (proved) return Error{refused->code, refused->text};
    if (address_.kind == Address::Kind::tcp) return record_unproved_refusal(*refused);
    return Error{refused->code,
                 fmt::format("{}: the rendezvous at {}, served by {}, refuses this rank: {}", who_,
                             address_text(address_), server_, refused->text)};
  }
  if (!proved) {
    is_over_ = true;
    return Error{Code::argument, fmt::format("{} does not know this job's key (UNISONO_JOB_KEY): "
                                             "not our rendezvous",
                                             address_text(address_))};
  }
  return std::optional(std::move(answer->message));
}

Result<Message> RendezvousClient::exchange(Descriptor connected) {
  return exchange_until(base::now_ns() + request_.timeout_ns + kAnswerMarginNs,
                        std::move(connected));
}

Result<Message> RendezvousClient::exchange_until(std::int64_t deadline_ns, Descriptor connected) {
  lost_connections_ = 0;
  unproved_refusal_.clear();
  std::int64_t retry_ns = kFirstRetryNs;
  for (;;) {
    stream_ = MessageStream(std::move(connected));
    hello_ = Nonce{};
    is_over_ = false;
    UNISONO_ASSIGN(std::optional<Message> message, try_hello(deadline_ns));
    if (message) return std::move(*message);
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
    Result<std::unique_ptr<HostRelay>> opened = HostRelay::open(key_, request_.ranks);
    // It cannot join, for instance for lack of a descriptor. All others hear of it.
    if (!opened.ok() && failure_.code == Code::ok) failure_ = opened.error();
    if (opened.ok()) relay_ = std::move(*opened);
    UNISONO_ASSIGN(const Message answer, exchange(std::move(connected)));
    const Welcome* welcome = std::get_if<Welcome>(&answer);
    if (welcome != nullptr && relay_ != nullptr) return complete_as_relay(*welcome);
    const Redirect* redirect = std::get_if<Redirect>(&answer);
    if (redirect == nullptr) return not_a_rendezvous();
    relay_.reset();
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
  UNISONO_ASSIGN(const Message answer, exchange(std::move(connected)));
  const Welcome* welcome = std::get_if<Welcome>(&answer);
  if (welcome == nullptr) return not_a_rendezvous();
  return complete(*welcome);
}

// A relay whose job cannot start ends, and tells only those that it has heard by then. The
// rendezvous knows the reason if it is still there. It is asked by all, because it waits for ranks
// that may not have heard the reason.
Error RendezvousClient::ask_why(const Error& failed) {
  address_ = request_.address;
  server_ = request_.server;
  failure_ = failed;
  const std::int64_t deadline_ns = base::now_ns() + kAskWhyNs;
  Result<Descriptor> connected = connect(deadline_ns, failed);
  if (!connected.ok()) return failed;
  const Result<Message> reply = exchange_until(deadline_ns, std::move(*connected));
  const bool tells =
      !reply.ok() && reply.error().code != Code::timeout && reply.error().code != Code::rank_lost;
  return tells && failed.code == Code::rank_lost ? reply.error() : failed;
}

Status RendezvousClient::check_ranks(const Welcome& welcome) const {
  if (welcome.members.size() == static_cast<std::size_t>(request_.ranks)) return base::success();
  return Error{Code::state, fmt::format("the rendezvous has {} ranks, the launcher {}",
                                        welcome.members.size(), request_.ranks)};
}

Result<Joined> RendezvousClient::complete(const Welcome& welcome) {
  UNISONO_TRY(check_ranks(welcome));
  Descriptor memory = stream_.take_attached();
  UNISONO_TRY(verify(memory, welcome));
  return Joined{welcome, std::move(memory), connections(welcome)};
}

Result<Joined> RendezvousClient::complete_as_relay(const Welcome& welcome) {
  UNISONO_TRY(check_remote(welcome));
  UNISONO_ASSIGN(HostRelay::PassedOn passed, relay_->pass_on(welcome, request_.rank));
  return Joined{std::move(passed.welcome), std::move(passed.memory), connections(welcome)};
}

std::unique_ptr<StartConnections> RendezvousClient::connections(const Welcome& welcome) {
  const StartConnections::Place place{.rank = request_.rank,
                                      .key = key_,
                                      .challenge = challenge_,
                                      .hello = hello_,
                                      .rank_zero_serves = welcome.rank_zero_serves};
  return std::make_unique<StartConnections>(place, std::move(stream_), std::move(relay_));
}

// A rank that has no connection may lack descriptors or memory, of which another way needs less.
void RendezvousClient::withdraw(const Error& error) {
  if (hello_ != Nonce{}) {
    if (relay_ != nullptr) relay_->refuse_all(error);
    if (is_over_ || stream_.closed()) return;
    std::string frame =
        encode(Withdrawal{hello_, Withdrawal::Reason::failed, error.code, error.message});
    sign(frame, key_, challenge_);
    static_cast<void>(stream_.send(frame));
  } else if (!has_said_hello_ && (error.code == Code::system || error.code == Code::resources)) {
    stream_ = MessageStream(Descriptor());
    tell_others(request_, error);
  }
}

Status RendezvousClient::check_remote(const Welcome& welcome) const {
  UNISONO_TRY(check_ranks(welcome));
  const std::uint32_t own = welcome.members[static_cast<std::size_t>(request_.rank)].pid;
  if (own == 0) return base::success();
  return Error{Code::state, fmt::format("{}: the rendezvous at {} is on another host, but reports "
                                        "pid {} for it",
                                        who_, address_text(address_), own)};
}

Status RendezvousClient::verify(const Descriptor& memory, const Welcome& welcome) const {
  const std::uint32_t own = welcome.members[static_cast<std::size_t>(request_.rank)].pid;
  UNISONO_TRY(memory::verify_memory(memory, welcome.memory_bytes));
  if (own == static_cast<std::uint32_t>(getpid())) return base::success();
  return Error{Code::unsupported,
               fmt::format("{} has pid {} here and pid {} at the rendezvous: the ranks on a host "
                           "must share one pid namespace",
                           who_, getpid(), own)};
}

}  // namespace

Result<Joined> join_rendezvous(const JoinRequest& request, Descriptor connected) {
  RendezvousClient client(request);
  const auto run = [&]() -> Result<Joined> {
    try {
      return client.run(std::move(connected));
    } catch (const std::exception& thrown) {
      return base::error_of(thrown);
    }
  };
  Result<Joined> joined = run();
  try {
    if (!joined.ok()) client.withdraw(joined.error());
  } catch (const std::exception&) {
    // The end of its connection is all that the others see then.
  }
  return joined;
}

}  // namespace unisono::bootstrap
