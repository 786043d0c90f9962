// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/host_relay.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/clock.hpp"
#include "bootstrap/address.hpp"
#include "bootstrap/rendezvous/welcome.hpp"
#include "memory/memory_file.hpp"

namespace unisono::bootstrap {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

Result<std::unique_ptr<HostRelay>> HostRelay::open(const wire::Key& key, int ranks) {
  UNISONO_ASSIGN(const std::uint64_t relay_socket, random_number());
  std::unique_ptr<HostRelay> relay(new HostRelay(key, std::max<std::uint64_t>(relay_socket, 1)));
  UNISONO_ASSIGN(relay->acceptor_, Acceptor::open(key, ranks));
  Address address = relay_address(relay->relay_socket_);
  UNISONO_TRY(relay->acceptor_->listen(address));
  return relay;
}

Result<std::optional<MessageStream::Received>> HostRelay::await_answer(MessageStream& rendezvous,
                                                                       const Nonce& challenge,
                                                                       const Nonce& own_hello,
                                                                       std::int64_t deadline_ns) {
  for (;;) {
    const std::int64_t now_ns = base::now_ns();
    UNISONO_ASSIGN(std::optional<MessageStream::Received> received,
                   turn(rendezvous, challenge, own_hello));
    if (received || rendezvous.closed() || now_ns >= deadline_ns) return received;
    const short events = unsent_.empty() ? POLLIN : POLLIN | POLLOUT;
    std::array<pollfd, 2> waiting{
        {{rendezvous.socket().get(), events, 0}, {acceptor_->descriptor(), POLLIN, 0}}};
    if (poll(waiting.data(), waiting.size(), base::poll_timeout_ms(deadline_ns)) < 0 &&
        errno != EINTR) {
      return base::system_error("poll", errno);
    }
  }
}

Result<std::optional<MessageStream::Received>> HostRelay::turn(MessageStream& rendezvous,
                                                               const Nonce& challenge,
                                                               const Nonce& own_hello) {
  for (;;) {
    UNISONO_ASSIGN(std::optional<MessageStream::Received> received,
                   rendezvous.receive(base::now_ns()));
    if (!received) break;
    const Refused* refused = std::get_if<Refused>(&received->message);
    const bool is_relayed = refused != nullptr && refused->hello != Nonce{} &&
                            signature_is_right(received->frame, key_, own_hello);
    if (!is_relayed) return received;
    refuse_one(*refused);
  }
  UNISONO_TRY(step_acceptor(challenge));
  UNISONO_TRY(flush(rendezvous.socket()));
  return std::optional<MessageStream::Received>();
}

void HostRelay::withdraw(const Withdrawal& own, const base::Descriptor& rendezvous,
                         const Nonce& challenge) {
  queue(own, challenge);
  static_cast<void>(flush(rendezvous));
}

Status HostRelay::step_acceptor(const Nonce& challenge) {
  UNISONO_ASSIGN(const std::vector<Acceptor::Event> events, acceptor_->step());
  for (const Acceptor::Event& event : events) {
    const Acceptor::Connection* const connection = acceptor_->find(event.connection);
    const Hello* hello = event.message ? std::get_if<Hello>(&*event.message) : nullptr;
    const Withdrawal* own = event.message ? std::get_if<Withdrawal>(&*event.message) : nullptr;
    if (connection != nullptr && !connection->admitted && hello != nullptr) {
      relay_hello(event.connection, *hello, challenge);
    } else if (connection != nullptr && own != nullptr && own->hello == connection->hello) {
      queue(*own, challenge);
    } else {
      // It has ended, or has sent a message that no rank sends.
      acceptor_->close(event.connection);
      relay_end(event.connection, challenge);
    }
  }
  return base::success();
}

void HostRelay::relay_hello(Acceptor::ConnectionId connection, const Hello& hello,
                            const Nonce& challenge) {
  acceptor_->admit(connection);
  const pid_t pid = acceptor_->find(connection)->peer.pid;
  relayed_ranks_.push_back({connection, hello, pid, false});
  queue(hello, challenge);
  if (pid == 0) queue(Withdrawal{hello.nonce, Withdrawal::Reason::unseen_pid}, challenge);
}

void HostRelay::relay_end(Acceptor::ConnectionId connection, const Nonce& challenge) {
  const auto relayed = std::ranges::find(relayed_ranks_, connection, &RelayedRank::connection);
  if (relayed == relayed_ranks_.end() || relayed->refused) return;
  queue(Withdrawal{relayed->hello.nonce, Withdrawal::Reason::ended}, challenge);
}

void HostRelay::refuse_one(const Refused& refused) {
  for (RelayedRank& relayed : relayed_ranks_) {
    if (relayed.hello.nonce != refused.hello || relayed.refused) continue;
    relayed.refused = true;
    acceptor_->refuse(relayed.connection, {refused.code, refused.text});
  }
}

void HostRelay::queue(const Message& message, const Nonce& challenge) {
  std::string frame = encode(message);
  sign(frame, key_, challenge);
  unsent_ += frame;
}

Status HostRelay::flush(const base::Descriptor& rendezvous) {
  while (!unsent_.empty()) {
    const ssize_t sent =
        send(rendezvous.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      unsent_.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      break;
    } else if (errno == EPIPE || errno == ECONNRESET) {
      unsent_.clear();  // its last message may say why it has closed
    } else if (errno != EINTR) {
      return base::system_error("cannot write to the rendezvous", errno);
    }
  }
  return base::success();
}

const HostRelay::RelayedRank* HostRelay::find_relayed(std::uint32_t rank) const {
  // The first one: the rendezvous has got the Hellos in this order and refuses the later ones.
  const auto found = std::ranges::find_if(relayed_ranks_, [rank](const RelayedRank& relayed) {
    return relayed.hello.rank == rank && !relayed.refused;
  });
  return found == relayed_ranks_.end() ? nullptr : &*found;
}

Result<HostRelay::PassedOn> HostRelay::pass_on(Welcome welcome, int own_rank) {
  for (WelcomeMember& member : welcome.members) member.pid = 0;
  const std::uint32_t host = welcome.members[static_cast<std::size_t>(own_rank)].host;
  std::vector<const RelayedRank*> welcomed;
  for (const int rank : ranks_on_host(welcome, host)) {
    std::uint32_t& pid = welcome.members[static_cast<std::size_t>(rank)].pid;
    if (rank == own_rank) {
      pid = static_cast<std::uint32_t>(getpid());
      continue;
    }
    const RelayedRank* relayed = find_relayed(static_cast<std::uint32_t>(rank));
    if (relayed == nullptr || relayed->pid == 0) {
      return Error{Code::state, fmt::format("the rendezvous says that rank {} is on the host of "
                                            "rank {}, but it has not joined through that rank",
                                            rank, own_rank)};
    }
    pid = static_cast<std::uint32_t>(relayed->pid);
    welcomed.push_back(relayed);
  }
  PassedOn passed;
  UNISONO_ASSIGN(passed.memory, memory::create_memory(welcome.memory_bytes));
  for (const RelayedRank& relayed : relayed_ranks_) {
    if (relayed.refused || std::ranges::find(welcomed, &relayed) != welcomed.end()) continue;
    acceptor_->refuse(relayed.connection,
                      {Code::state, fmt::format("rank {} (pid {}) is too late: job {} has "
                                                "started, and each rank joins it once",
                                                relayed.hello.rank, relayed.pid, welcome.job)});
  }
  const std::string unsigned_frame = encode(welcome);
  for (const RelayedRank* relayed : welcomed) {
    std::string frame = unsigned_frame;
    sign(frame, key_, relayed->hello.nonce);
    // A rank that has just ended does not get it. The job detects its death as any later one.
    acceptor_->send(relayed->connection, frame, passed.memory.get());
  }
  passed.welcome = std::move(welcome);
  return passed;
}

void HostRelay::refuse_all(const Error& error) { acceptor_->refuse_admitted(error); }

std::vector<base::Descriptor> HostRelay::release_connections() {
  return acceptor_->release_admitted();
}

}  // namespace unisono::bootstrap
