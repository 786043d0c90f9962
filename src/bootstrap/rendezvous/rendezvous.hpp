// SPDX-License-Identifier: BSD-3-Clause
// Rendezvous: the server at which the ranks of a job meet. It hears every rank's Hello, and when
// the last has come tells who is where, and hands those of its own host the memory file. Ranks of
// its host that come over TCP are sent to its Unix socket; of each other host the first that comes
// stays and becomes the host's gate (gate.hpp), to which the others are sent. Until all have come
// any failure (the deadline, a rank that ended, a size that does not fit) is told to every rank
// that came, with the ranks that are missing. It never waits: the owner polls descriptor() and
// calls step(), or lets serve() do so. Used by the launcher and by rank 0. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "bootstrap/address.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "bootstrap/rendezvous/reception.hpp"
#include "bootstrap/rendezvous/welcome.hpp"

namespace unisono::bootstrap {

class Rendezvous {
 public:
  struct Options {
    int ranks = 1;
    Address address;                 // where to listen; an empty name: a random abstract socket
    std::string key;                 // of the job; needed for tcp
    std::string job;                 // name for people; empty: the address
    std::uint64_t memory_bytes = 0;  // least size of the memory file; a rank may wish for more
    std::int64_t timeout_ns = 0;     // from the first rank's Hello to the last's
  };
  enum class State { gathering, started, failed };

  // `listener`: what listens at a tcp address already; none: it is opened.
  static base::Result<std::unique_ptr<Rendezvous>> open(
      const Options& options, base::Descriptor listener = base::Descriptor());
  ~Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // What goes into UNISONO_RENDEZVOUS.
  std::string address() const { return address_text(address_); }

  // The Unix socket, to which the ranks of this host are sent in any case.
  const Address& local_address() const { return unix_address_; }

  // Readable when step() has something to do.
  int descriptor() const { return reception_->descriptor(); }
  // When step() is to be called even if nothing is readable; INT64_MAX if never.
  std::int64_t next_deadline_ns() const;
  // Gathers so long at most; a deadline that is earlier stays.
  void end_at(std::int64_t deadline_ns);
  // Accepts, reads and answers what is there.
  State step();
  // Steps until the job has started or failed; the error is the one the ranks were told.
  base::Status serve(std::int64_t deadline_ns);

  State state() const { return state_; }
  // Of a failed rendezvous.
  const base::Error& error() const { return error_; }
  bool has_joined(int rank) const;
  // Connections that were no rank of this job: wrong user, wrong key, malformed or silent.
  int strangers() const { return reception_->strangers(); }

  // A rank's process ended (`how`: "exited with status 1"). Fails the job if it had not started
  // and the rank is missing; the ranks that came, or come later, are told.
  void rank_ended(int rank, std::string_view how);

  // The owner cannot go on: fails the job if it had not started.
  void give_up(const base::Error& error);

  // The connections to the ranks of this host and to the gates of the others, which stay open as
  // long as their owner keeps them.
  std::vector<base::Descriptor> release_connections();

 private:
  using Number = Reception::Number;
  struct Place {
    Number visitor = 0;  // by which the rank has come; 0: has not
    bool by_gate = false;
    std::string origin;
  };
  struct GateRecord {
    Number visitor = 0;
    std::uint32_t rank = 0;
    std::uint64_t door = 0;
  };

  explicit Rendezvous(const Options& options);
  base::Status start_listening(base::Descriptor listener);

  void take(Reception::Event event);
  void take_hello(Number visitor, const Hello& hello);
  void take_objection(Number gate, const Objection& objection);
  void lose(Number visitor);
  base::Error objection(Number visitor, const Hello& hello) const;
  base::Error too_late_or_twice(const Hello& hello, const std::string& from);
  std::string origin(Number visitor, const Hello& hello) const;
  bool is_gate(Number visitor) const { return reception_->find(visitor)->kept; }
  bool redirect(Number visitor, const Hello& hello);
  void refuse(Number visitor, const Hello& hello, const base::Error& error);
  void seat(Number visitor, const Hello& hello);
  void start();
  void welcome_all(const Welcome& welcome, const base::Descriptor& memory);
  void fail(base::Error error);
  std::string missing_text() const;

  Options options_;
  wire::Key key_;
  HostId host_{};
  Address address_;       // as announced
  Address unix_address_;  // the same, or where tcp callers of this host are sent
  std::unique_ptr<Reception> reception_;
  std::vector<Place> places_;      // by rank
  std::vector<Arrival> arrivals_;  // by rank
  std::map<HostId, GateRecord> gates_;
  std::string notes_;  // refusals that the final error should mention
  int came_ = 0;
  std::int64_t deadline_ns_;
  State state_ = State::gathering;
  base::Error error_;
};

}  // namespace unisono::bootstrap
