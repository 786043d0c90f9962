// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/serving_rank.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <exception>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread.hpp"
#include "bootstrap/rendezvous/rendezvous.hpp"
#include "bootstrap/socket.hpp"
#include "wire/key.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;
using base::Status;

// Mostly all ranks come at about the same time, and nobody notices this wait.
constexpr std::int64_t kQuietNs = base::kSecond;
// How long rank 0 tells others that it cannot listen, or could accept no more ranks. It does not
// know how many of them can hear it.
constexpr std::int64_t kNoticeNs = 2 * base::kSecond;

// Serves a rendezvous in a thread until this rank has joined or failed. Until then all ranks, this
// one included, are told an error of the start, also if they connect after it. An error of this
// rank alone is told to the others. If some rank has said that it cannot start, the thread serves
// on. It ends when all ranks have heard it, also late ones, or at the deadline.
class RendezvousThread {
 public:
  RendezvousThread(Rendezvous& server, const JoinRequest& request)
      : server_(server), request_(request) {}
  // After an exception.
  ~RendezvousThread() {
    if (thread_.joinable()) end(Error{Code::resources, "no more memory"});
  }
  RendezvousThread(const RendezvousThread&) = delete;
  RendezvousThread& operator=(const RendezvousThread&) = delete;

  Status start();
  void end(const Error& own_error);

 private:
  void serve();
  void step();
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
    step();
    if (!ended_) continue;
    if (own_error_.code != Code::ok) server_.give_up(own_error_);
    return tell_late_ranks();
  }
}

// An exception must not end the process, and the ranks wait for this server.
void RendezvousThread::step() {
  try {
    server_.step();
  } catch (const std::exception& thrown) {
    server_.give_up(base::error_of(thrown));
  }
}

void RendezvousThread::tell_late_ranks() {
  std::int64_t logs_ns = base::now_ns() + kQuietNs;
  while (server_.still_tells_failure() && base::now_ns() < deadline_ns_) {
    if (base::now_ns() >= logs_ns) {
      base::log(
          base::LogLevel::warn, "bootstrap",
          "the job cannot start; rank {} waits up to {} for ranks that do not know it yet: {}",
          request_.rank, base::format_time_ns(request_.timeout_ns), own_error_.message);
      logs_ns = deadline_ns_;
    }
    pollfd waiting{server_.descriptor(), POLLIN, 0};
    poll(&waiting, 1, base::poll_timeout_ms(std::min(logs_ns, deadline_ns_)));
    step();
  }
}

Rendezvous::Options options_of(const JoinRequest& request, const Address& address) {
  Rendezvous::Options options;
  options.ranks = request.ranks;
  options.address = address;
  options.key = request.key;
  options.memory_bytes = request.memory_bytes;
  options.timeout_ns = request.timeout_ns;
  options.is_rank_zero = true;
  return options;
}

Result<Joined> serve(const JoinRequest& request, std::unique_ptr<Rendezvous>& server) {
  JoinRequest local = request;
  local.address = server->local_address();
  local.address_given = true;
  // Before other ranks can use up the descriptors, and the server stops listening.
  UNISONO_ASSIGN(ConnectAttempt own, attempt_connect(local.address, base::now_ns()));
  RendezvousThread serving(*server, request);
  UNISONO_TRY(serving.start());
  Result<Joined> joined = join_rendezvous(local, std::move(own.socket));
  serving.end(joined.ok() ? Error{} : joined.error());
  if (joined.ok()) {
    joined->connections->serve(std::move(server));
  } else if (server->outcome().is_deaf) {
    return server->outcome().failure;
  }
  return joined;
}

// Rank 0's part of tell_others(). `telling.failure` says what it tells.
void tell_as_rank_zero(JoinRequest telling, const std::vector<bool>& heard) {
  if (telling.address_given) {
    Result<ConnectAttempt> launcher =
        attempt_connect(telling.address, base::now_ns() + base::kSecond);
    if (launcher.ok() && launcher->socket.valid()) {
      static_cast<void>(join_rendezvous(telling, std::move(launcher->socket)));
      return;
    }
  }
  Rendezvous::Options options = options_of(telling, telling.address);
  options.heard = heard;
  Result<std::unique_ptr<Rendezvous>> server = Rendezvous::open(options);
  if (!server.ok() && telling.address.kind == Address::Kind::tcp) {
    telling.timeout_ns = std::min(telling.timeout_ns, kNoticeNs);
    options.address = notice_address(telling);
    server = Rendezvous::open(options);
  }
  if (server.ok()) static_cast<void>(serve(telling, *server));
}

}  // namespace

Address notice_address(const JoinRequest& request) {
  const std::string text = fmt::format("{} {}", request.ranks, address_text(request.address));
  return {Address::Kind::unix_name,
          fmt::format("unisono-{}-failed-{:016x}", geteuid(),
                      wire::hash(wire::key_of(request.key), text)),
          0};
}

void tell_others(const JoinRequest& request, const Error& error, const std::vector<bool>& heard) {
  if (request.failure.code != Code::ok) return;  // it does nothing else already
  JoinRequest telling = request;
  telling.failure = error;
  const Status told = base::call_with_own_descriptors("unisono-tell", [&telling, &heard] {
    // Each is refused, with the error that this rank knows.
    if (telling.rank == 0) return tell_as_rank_zero(telling, heard);
    static_cast<void>(join_rendezvous(telling));
  });
  if (told.ok()) return;
  base::log(base::LogLevel::info, "bootstrap",
            "rank {} could not tell the others that it fails: {}", request.rank,
            told.error().message);
}

Result<Joined> serve_and_join(const JoinRequest& request, Descriptor listener) try {
  Result<std::unique_ptr<Rendezvous>> server =
      Rendezvous::open(options_of(request, request.address), std::move(listener));
  if (!server.ok()) {
    tell_others(request, server.error());
    return server.error();
  }
  Result<Joined> joined = serve(request, *server);
  if (joined.ok()) return joined;
  // The server was not served, or could accept no more ranks.
  if ((*server)->state() == Rendezvous::State::gathering || (*server)->outcome().is_deaf) {
    const std::vector<bool> heard = (*server)->outcome().heard;
    const bool was_served = (*server)->outcome().is_deaf;
    server->reset();
    JoinRequest again = request;
    // Some may have ended, because they have lost their connection.
    if (was_served) again.timeout_ns = std::min(again.timeout_ns, kNoticeNs);
    tell_others(again, joined.error(), heard);
  }
  return joined;
} catch (const std::exception& thrown) {
  // Ranks that had connected may have ended, because they have lost their connection.
  JoinRequest again = request;
  again.timeout_ns = std::min(again.timeout_ns, kNoticeNs);
  const Error error = base::error_of(thrown);
  tell_others(again, error);
  return error;
}

Result<Joined> join_or_serve(const JoinRequest& request) {
  const std::int64_t deadline_ns = base::now_ns() + request.timeout_ns;
  Result<ConnectAttempt> attempt = attempt_connect(request.address, deadline_ns);
  if (!attempt.ok()) {
    tell_others(request, attempt.error());
    return attempt.error();
  }
  const bool is_there = attempt->socket.valid() || (attempt->busy && base::now_ns() < deadline_ns);
  return is_there ? join_rendezvous(request, std::move(attempt->socket)) : serve_and_join(request);
}

}  // namespace unisono::bootstrap
