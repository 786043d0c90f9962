// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/gate.hpp"

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

Result<std::unique_ptr<Gate>> Gate::open(const wire::Key& key, int ranks) {
  UNISONO_ASSIGN(const std::uint64_t door, random_number());
  std::unique_ptr<Gate> gate(new Gate(key, std::max<std::uint64_t>(door, 1)));
  UNISONO_ASSIGN(gate->reception_, Reception::open(key, ranks));
  Address address = gate_address(gate->door_);
  UNISONO_TRY(gate->reception_->listen(address));
  return gate;
}

Result<std::optional<Line::Arrival>> Gate::await_answer(Line& rendezvous, const Nonce& challenge,
                                                        const Nonce& own_hello,
                                                        std::int64_t deadline_ns) {
  for (;;) {
    const std::int64_t now_ns = base::now_ns();
    UNISONO_ASSIGN(std::optional<Line::Arrival> arrival, rendezvous.receive(now_ns));
    if (arrival) {
      const Refused* refused = std::get_if<Refused>(&arrival->message);
      const bool of_guest = refused != nullptr && refused->hello != Nonce{} &&
                            signature_is_right(arrival->frame, key_, own_hello);
      if (!of_guest) return arrival;
      turn_away(*refused);
      continue;
    }
    if (rendezvous.closed() || now_ns >= deadline_ns) return std::optional<Line::Arrival>();
    const short events = unsent_.empty() ? POLLIN : POLLIN | POLLOUT;
    std::array<pollfd, 2> waiting{
        {{rendezvous.socket().get(), events, 0}, {reception_->descriptor(), POLLIN, 0}}};
    if (poll(waiting.data(), waiting.size(), base::poll_timeout_ms(deadline_ns)) < 0 &&
        errno != EINTR) {
      return system_error("poll", errno);
    }
    UNISONO_TRY(hear_guests(challenge));
    UNISONO_TRY(flush(rendezvous.socket()));
  }
}

Status Gate::hear_guests(const Nonce& challenge) {
  UNISONO_ASSIGN(const std::vector<Reception::Event> events, reception_->step());
  for (const Reception::Event& event : events) {
    const Reception::Visitor* const visitor = reception_->find(event.visitor);
    const Hello* hello = event.message ? std::get_if<Hello>(&*event.message) : nullptr;
    if (visitor != nullptr && !visitor->kept && hello != nullptr) {
      let_in(event.visitor, *hello, challenge);
    } else {
      // It has gone, or says what no rank says.
      reception_->close(event.visitor);
      lose(event.visitor, challenge);
    }
  }
  return base::success();
}

void Gate::let_in(Reception::Number visitor, const Hello& hello, const Nonce& challenge) {
  reception_->keep(visitor);
  const pid_t pid = reception_->find(visitor)->peer.pid;
  guests_.push_back({visitor, hello, pid, false});
  say(hello, challenge);
  if (pid == 0) say(Objection{hello.nonce, Objection::Reason::unseen_pid}, challenge);
}

void Gate::lose(Reception::Number visitor, const Nonce& challenge) {
  const auto guest = std::ranges::find(guests_, visitor, &Guest::visitor);
  if (guest == guests_.end() || guest->refused) return;
  say(Objection{guest->hello.nonce, Objection::Reason::ended}, challenge);
}

void Gate::turn_away(const Refused& refused) {
  for (Guest& guest : guests_) {
    if (guest.hello.nonce != refused.hello || guest.refused) continue;
    guest.refused = true;
    reception_->refuse(guest.visitor, {refused.code, refused.text});
  }
}

void Gate::say(const Message& message, const Nonce& challenge) {
  std::string frame = encode(message);
  sign(frame, key_, challenge);
  unsent_ += frame;
}

Status Gate::flush(const base::Descriptor& rendezvous) {
  while (!unsent_.empty()) {
    const ssize_t sent =
        send(rendezvous.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      unsent_.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      break;
    } else if (errno == EPIPE || errno == ECONNRESET) {
      unsent_.clear();  // what it said before it closed is more to the point
    } else if (errno != EINTR) {
      return system_error("cannot write to the rendezvous", errno);
    }
  }
  return base::success();
}

const Gate::Guest* Gate::seated(std::uint32_t rank) const {
  // The rendezvous has heard of them in this order.
  const auto found = std::ranges::find_if(
      guests_, [rank](const Guest& guest) { return guest.hello.rank == rank && !guest.refused; });
  return found == guests_.end() ? nullptr : &*found;
}

Result<Gate::Handed> Gate::hand_on(Welcome welcome, int own_rank) {
  for (WelcomePlace& place : welcome.places) place.pid = 0;
  const std::uint32_t host = welcome.places[static_cast<std::size_t>(own_rank)].host;
  std::vector<const Guest*> admitted;
  for (const int rank : ranks_on_host(welcome, host)) {
    std::uint32_t& pid = welcome.places[static_cast<std::size_t>(rank)].pid;
    if (rank == own_rank) {
      pid = static_cast<std::uint32_t>(getpid());
      continue;
    }
    const Guest* guest = seated(static_cast<std::uint32_t>(rank));
    if (guest == nullptr || guest->pid == 0) {
      return Error{Code::state, fmt::format("the rendezvous says that rank {} is on the host of "
                                            "rank {}, by which it has not come",
                                            rank, own_rank)};
    }
    pid = static_cast<std::uint32_t>(guest->pid);
    admitted.push_back(guest);
  }
  Handed handed;
  UNISONO_ASSIGN(handed.memory, memory::create_memory(welcome.memory_bytes));
  for (const Guest& guest : guests_) {
    if (guest.refused || std::ranges::find(admitted, &guest) != admitted.end()) continue;
    reception_->refuse(guest.visitor,
                       {Code::state, fmt::format("rank {} (pid {}) comes too late: job {} has "
                                                 "started, and each rank joins it once",
                                                 guest.hello.rank, guest.pid, welcome.job)});
  }
  const std::string unsigned_frame = encode(welcome);
  for (const Guest* guest : admitted) {
    std::string frame = unsigned_frame;
    sign(frame, key_, guest->hello.nonce);
    // Who ended just now does not get it; the others learn of its death as of any later.
    reception_->send(guest->visitor, frame, handed.memory.get());
  }
  handed.guests = reception_->release_kept();
  handed.welcome = std::move(welcome);
  return handed;
}

void Gate::refuse_all(const Error& error) { reception_->refuse_kept(error); }

}  // namespace unisono::bootstrap
