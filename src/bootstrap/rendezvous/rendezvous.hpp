// SPDX-License-Identifier: BSD-3-Clause
// Rendezvous: the server that brings the ranks of a job together. It reads every rank's Hello. When
// the last has arrived it tells all ranks where each is, and gives those of its own host the memory
// file. It redirects ranks of its host that connect over TCP to its Unix socket. Of each other
// host, the first rank stays connected and becomes the host's relay (host_relay.hpp), to which the
// server redirects the others. Until all ranks have joined, any failure (the deadline, a rank that
// ended, a size that does not fit) is told to every rank that has joined, with the ranks that are
// missing. After that, a rank that cannot go on may still say so (Withdrawal), and all are told as
// long as the owner steps the server. step() never waits: the owner polls descriptor(), or calls
// serve(). The launcher and rank 0 use it. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "bootstrap/address.hpp"
#include "bootstrap/rendezvous/acceptor.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "bootstrap/rendezvous/roster.hpp"
#include "bootstrap/rendezvous/welcome.hpp"

namespace unisono::bootstrap {

class Rendezvous {
 public:
  struct Options {
    int ranks = 1;
    Address address;                 // where to listen; an empty name: a random abstract socket
    std::string key;                 // of the job; needed for tcp
    std::string job;                 // name for messages; empty: the address
    std::uint64_t memory_bytes = 0;  // least size of the memory file; a rank may want more
    std::int64_t timeout_ns = 0;     // from the first rank's Hello to the last's
    bool is_rank_zero = false;       // the owner is rank 0, no launcher
    std::vector<bool> heard{};       // by rank: it knows already that the job cannot start
  };
  enum class State { gathering, started, failed };

  // `listener`: a socket that listens at the address already; invalid: opens one.
  static base::Result<std::unique_ptr<Rendezvous>> open(
      const Options& options, base::Descriptor listener = base::Descriptor());
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // A value for UNISONO_RENDEZVOUS.
  std::string address() const { return address_text(address_); }

  // The Unix socket, by which the ranks of this host join in any case.
  const Address& local_address() const { return unix_address_; }

  // Readable when step() has something to do.
  int descriptor() const { return acceptor_->descriptor(); }
  // The time at which step() has to be called even if nothing is readable; INT64_MAX: never.
  std::int64_t next_deadline_ns() const;
  // Ends the gathering at this deadline, unless there is an earlier one.
  void end_at(std::int64_t deadline_ns);
  // Accepts, reads and answers without waiting.
  State step();
  // Steps until the job has started or failed. The error is the one that the ranks are told.
  base::Status serve(std::int64_t deadline_ns);

  State state() const { return state_; }
  bool has_joined(int rank) const { return roster_.has_joined(rank); }
  // Connections that were of no rank of this job: wrong user, wrong key, malformed or silent.
  int rejected_peers() const { return acceptor_->rejected_peers(); }

  // A rank has said that it cannot start, and not every rank has heard that yet.
  bool still_tells_failure() const;
  // The details of its state.
  struct Outcome {
    base::Error failure;      // that the ranks are told; code ok: none
    bool is_deaf = false;     // it has failed since it could accept no more ranks
    std::vector<bool> heard;  // by rank: it has sent a Hello and was not redirected then
    std::vector<int> lost;    // relays whose connection has ended after the Welcome
  };
  const Outcome& outcome() const { return outcome_; }

  // A rank's process has ended (`how`: "exited with status 1"). Fails the job if it has not
  // started.
  void rank_ended(int rank, std::string_view how);

  // The owner cannot go on: all ranks are told, also after the Welcome.
  void give_up(const base::Error& error);

  // The connections to the ranks of this host and to the relays of the others. They stay open as
  // long as the caller keeps them.
  std::vector<base::Descriptor> release_connections();

 private:
  using ConnectionId = Acceptor::ConnectionId;
  explicit Rendezvous(const Options& options);
  base::Status start_listening(base::Descriptor listener);

  void take(Acceptor::Event event);
  void take_hello(ConnectionId connection, const Hello& hello);
  void take_withdrawal(ConnectionId relay, const Withdrawal& withdrawal);
  void connection_ended(ConnectionId connection);
  base::Error reason_to_fail(ConnectionId connection, const Hello& hello) const;
  std::string origin(ConnectionId connection, const Hello& hello) const;
  bool is_relay(ConnectionId connection) const { return acceptor_->find(connection)->admitted; }
  bool redirect(ConnectionId connection, const Hello& hello);
  void refuse(ConnectionId connection, const Hello& hello, const base::Error& error);
  void record_join(ConnectionId connection, const Hello& hello);
  void start();
  void fail(base::Error error);

  Options options_;
  wire::Key key_;
  HostId host_{};
  Address address_;       // as announced
  Address unix_address_;  // the same, or where ranks of this host that use tcp are redirected
  std::unique_ptr<Acceptor> acceptor_;
  Roster roster_;
  std::int64_t deadline_ns_;
  State state_ = State::gathering;
  bool rank_cannot_start_ = false;
  Outcome outcome_;
};

}  // namespace unisono::bootstrap
