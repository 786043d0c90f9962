// SPDX-License-Identifier: BSD-3-Clause
#include "group/bootstrap/join.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include "base/clock.hpp"
#include "base/log.hpp"
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
using base::Setting;
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

// One rank's way to its seat.
class Joining {
 public:
  Joining(const JobDescription& job, const base::Settings& settings)
      : job_(job),
        key_(wire::key_of(job.key)),
        timeout_ns_(settings.time_ns(Setting::start_timeout)),
        memory_bytes_(static_cast<std::uint64_t>(settings.bytes(Setting::shared_limit))) {}

  Result<Seat> alone() const;
  // `connected`: a connection to the address, if there is one already.
  Result<Seat> through_rendezvous(Address address, Descriptor connected = Descriptor()) const;
  Result<Seat> hosting() const;
  // Rank 0 at an address that was given: if nobody listens there, it is for rank 0 to do.
  Result<Seat> through_or_hosting() const;

 private:
  Result<Descriptor> reach(const Address& address) const;
  // Says Hello and gives the answer.
  Result<Line::Arrival> ask(Line& line, const Address& address, Nonce& nonce) const;
  Result<Address> follow(const Redirect& redirect) const;
  Result<Seat> take_seat(Line& line, const Welcome& welcome) const;
  Error no_answer(const Line& line, const Address& address) const;

  const JobDescription& job_;
  wire::Key key_;
  std::int64_t timeout_ns_;
  std::uint64_t memory_bytes_;
};

Result<Seat> Joining::alone() const {
  Seat seat;
  seat.rank = job_.rank;
  seat.ranks = job_.ranks;
  seat.job = fmt::format("unisono-{}-pid-{}", geteuid(), getpid());
  seat.memory_bytes = memory_bytes_;
  seat.members.push_back(Member{getpid()});
  UNISONO_ASSIGN(seat.memory, create_memory(memory_bytes_));
  return seat;
}

Result<Seat> Joining::through_or_hosting() const {
  UNISONO_ASSIGN(std::optional<Descriptor> socket,
                 try_connect(job_.address, base::now_ns() + timeout_ns_));
  return socket ? through_rendezvous(job_.address, std::move(*socket)) : hosting();
}

Result<Descriptor> Joining::reach(const Address& address) const {
  const std::int64_t deadline_ns = base::now_ns() + timeout_ns_;
  std::int64_t retry_ns = kFirstRetryNs;
  for (;;) {
    UNISONO_ASSIGN(std::optional<Descriptor> socket, try_connect(address, deadline_ns));
    if (socket) return std::move(*socket);
    const std::int64_t left_ns = deadline_ns - base::now_ns();
    if (left_ns <= 0) {
      return Error{
          Code::timeout,
          fmt::format("rank {} of {}: nobody listens at {} after {} (UNISONO_START_TIMEOUT); "
                      "{} hosts the rendezvous, did it start?",
                      job_.rank, job_.ranks, address_text(address),
                      base::format_time_ns(timeout_ns_),
                      job_.address_given ? "the launcher or rank 0" : "rank 0")};
    }
    sleep_ns(std::min(retry_ns, left_ns));
    retry_ns = std::min(2 * retry_ns, kLastRetryNs);
  }
}

Error Joining::no_answer(const Line& line, const Address& address) const {
  if (line.closed()) {
    return {Code::rank_lost,
            fmt::format("rank {} of {}: the rendezvous at {} ended before all ranks "
                        "had joined",
                        job_.rank, job_.ranks, address_text(address))};
  }
  return {Code::timeout, fmt::format("rank {} of {}: no answer from the rendezvous at {} within {} "
                                     "(UNISONO_START_TIMEOUT)",
                                     job_.rank, job_.ranks, address_text(address),
                                     base::format_time_ns(timeout_ns_))};
}

Result<Line::Arrival> Joining::ask(Line& line, const Address& address, Nonce& nonce) const {
  if (address.kind == Address::Kind::unix_name) {
    UNISONO_ASSIGN(const Peer peer, peer_of(line.socket()));
    if (peer.uid != geteuid()) {
      return Error{Code::argument,
                   fmt::format("{} belongs to user {}, this process to user {}: not "
                               "our rendezvous",
                               address_text(address), peer.uid, geteuid())};
    }
  }
  const std::int64_t deadline_ns = base::now_ns() + timeout_ns_ + kAnswerMarginNs;
  UNISONO_ASSIGN(const std::optional<Line::Arrival> greeting, line.receive(deadline_ns));
  if (!greeting) return no_answer(line, address);
  const Challenge* challenge = std::get_if<Challenge>(&greeting->message);
  if (challenge == nullptr) {
    return Error{Code::state, fmt::format("{} is no rendezvous", address_text(address))};
  }
  Hello hello;
  UNISONO_ASSIGN(hello.nonce, random_nonce());
  UNISONO_ASSIGN(hello.boot_id, own_boot_id());
  hello.rank = static_cast<std::uint32_t>(job_.rank);
  hello.ranks = static_cast<std::uint32_t>(job_.ranks);
  hello.memory_bytes = memory_bytes_;
  nonce = hello.nonce;
  std::string frame = encode(hello);
  sign(frame, key_, challenge->nonce);
  UNISONO_TRY(line.send(frame));
  UNISONO_ASSIGN(std::optional<Line::Arrival> answer, line.receive(deadline_ns));
  if (!answer) return no_answer(line, address);
  return std::move(*answer);
}

Result<Address> Joining::follow(const Redirect& redirect) const {
  UNISONO_ASSIGN(const BootId boot_id, own_boot_id());
  const Address local{Address::Kind::unix_name, redirect.name, 0};
  bool reachable = boot_id == redirect.boot_id;
  if (reachable) {
    UNISONO_ASSIGN(const std::optional<Descriptor> socket, try_connect(local, base::now_ns()));
    reachable = socket.has_value();
  }
  if (!reachable) {
    return Error{
        Code::unsupported,
        fmt::format("unsupported: several hosts: rank {} is not on the machine (or in the "
                    "network namespace) of the rendezvous at {}; all ranks of a job must be",
                    job_.rank, address_text(job_.address))};
  }
  return local;
}

Result<Seat> Joining::through_rendezvous(Address address, Descriptor connected) const {
  // The second turn is for a Redirect.
  for (int turn = 0; turn < 2; ++turn) {
    if (!connected.valid()) {
      UNISONO_ASSIGN(connected, reach(address));
    }
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
      return take_seat(line, *welcome);
    }
    const Redirect* redirect = std::get_if<Redirect>(&answer.message);
    if (redirect == nullptr || address.kind != Address::Kind::tcp) break;
    UNISONO_ASSIGN(address, follow(*redirect));
  }
  return Error{Code::state, fmt::format("{} is no rendezvous", address_text(address))};
}

Result<Seat> Joining::take_seat(Line& line, const Welcome& welcome) const {
  if (welcome.pids.size() != static_cast<std::size_t>(job_.ranks)) {
    return Error{Code::state, fmt::format("the rendezvous speaks of {} ranks, the launcher of {}",
                                          welcome.pids.size(), job_.ranks)};
  }
  Seat seat;
  seat.rank = job_.rank;
  seat.ranks = job_.ranks;
  seat.job = welcome.job;
  seat.memory = line.take_attached();
  seat.memory_bytes = welcome.memory_bytes;
  UNISONO_TRY(verify_memory(seat.memory, seat.memory_bytes));
  for (const std::uint32_t pid : welcome.pids) {
    seat.members.push_back(Member{static_cast<pid_t>(pid)});
  }
  const pid_t own = seat.members[static_cast<std::size_t>(seat.rank)].pid;
  if (own != getpid()) {
    return Error{
        Code::unsupported,
        fmt::format("rank {} has pid {} here and pid {} at the rendezvous: the ranks of a job "
                    "must share one pid namespace",
                    seat.rank, getpid(), own)};
  }
  seat.channel = line.take_socket();
  return seat;
}

Result<Seat> Joining::hosting() const {
  Rendezvous::Options options;
  options.ranks = job_.ranks;
  options.address = job_.address;
  options.key = job_.key;
  options.memory_bytes = memory_bytes_;
  options.timeout_ns = timeout_ns_;
  UNISONO_ASSIGN(const std::unique_ptr<Rendezvous> server, Rendezvous::open(options));

  UNISONO_ASSIGN(const Address address, parse_address(server->address()));

  // The application's signal handlers are not to run in our thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const std::int64_t deadline_ns = base::now_ns() + timeout_ns_;
  std::thread serving;
  try {
    serving = std::thread([&server, deadline_ns] {
      // The ranks, this one included, are told the outcome.
      [[maybe_unused]] const Status outcome = server->serve(deadline_ns);
    });
  } catch (const std::system_error& failure) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return Error{Code::resources, fmt::format("rank 0 cannot start a thread for the rendezvous: {}",
                                              failure.what())};
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);

  Result<Seat> seat = through_rendezvous(address);
  serving.join();
  if (seat.ok()) seat->hosted = server->release_connections();
  return seat;
}

}  // namespace

Result<Seat> join(const JobDescription& job, const base::Settings& settings) {
  const Joining joining(job, settings);
  if (job.address.name.empty()) return joining.alone();
  if (job.rank != 0) return joining.through_rendezvous(job.address);
  return job.address_given ? joining.through_or_hosting() : joining.hosting();
}

}  // namespace unisono::group
