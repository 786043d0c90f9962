// SPDX-License-Identifier: BSD-3-Clause
// Rendezvous: the server at which the ranks of a job meet. It hears every rank's Hello, and when
// the last has come tells each who is where, and hands those of its own host the memory file; a
// rank of that host that comes over TCP is sent to the Unix socket first. Until then any failure
// (the deadline, a rank that ended, a size that does not fit) is told to every rank that came, with
// the ranks that are missing. It never waits: the owner polls descriptor() and calls step(), or
// lets serve() do so. Used by the launcher and by rank 0. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "group/bootstrap/address.hpp"
#include "group/bootstrap/message.hpp"
#include "group/bootstrap/welcome.hpp"

namespace unisono::group {

class Rendezvous {
 public:
  struct Options {
    int ranks = 1;
    Address address;                 // where to listen; an empty name: a random abstract socket
    std::string key;                 // of the job; needed for tcp
    std::string job;                 // name for people; empty: the address
    std::uint64_t memory_bytes = 0;  // least size of the memory file; a rank may wish for more
    std::int64_t timeout_ns = 0;     // from the first rank's Hello to the last's
    // What its ranks are called in messages, where it serves those of one host of a job only;
    // empty: by their numbers.
    std::vector<int> names{};
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

  // Readable when step() has something to do.
  int descriptor() const { return poller_.get(); }
  // When step() is to be called even if nothing is readable; INT64_MAX if never.
  std::int64_t next_deadline_ns() const;
  // Accepts, reads and answers what is there.
  State step();
  // Steps until the job has started or failed; the error is the one the ranks were told.
  base::Status serve(std::int64_t deadline_ns);

  State state() const { return state_; }
  // Of a failed rendezvous.
  const base::Error& error() const { return error_; }
  bool has_joined(int rank) const;
  // Connections that were no rank of this job: wrong user, wrong key, malformed or silent.
  int strangers() const { return strangers_; }

  // A rank's process ended (`how`: "exited with status 1"). Fails the job if it had not started
  // and the rank is missing; the ranks that came, or come later, are told.
  void rank_ended(int rank, std::string_view how);

  // The connections to the ranks, which stay open as long as their owner keeps them.
  std::vector<base::Descriptor> release_connections();

 private:
  struct Connection {
    base::Descriptor socket;
    bool local = false;  // Unix socket, so that the peer is known
    Peer peer;
    Nonce nonce{};
    std::string received;
    std::uint64_t number = 0;  // in the order of arrival
    int rank = -1;             // after a valid Hello
  };
  using Connections = std::map<int, Connection>;  // by descriptor

  explicit Rendezvous(const Options& options);
  base::Status start_listening();
  base::Status watch(const base::Descriptor& socket);

  void accept_all(const base::Descriptor& listener, bool local);
  void greet(base::Descriptor socket, bool local);
  void read_from(Connections::iterator connection);
  void drop_stranger(Connections::iterator connection);
  void make_room();

  void take_hello(Connections::iterator connection, const Hello& hello);
  base::Error objection(const Connection& connection, const Hello& hello) const;
  std::string origin(const Connection& connection, const Hello& hello) const;
  int name_of(std::uint32_t rank) const;
  void redirect(Connections::iterator connection, const Hello& hello);
  void refuse(Connections::iterator connection, const base::Error& error);
  void seat(Connections::iterator connection, const Hello& hello);
  void start();
  void welcome_all(const Welcome& welcome, const base::Descriptor& memory);
  void fail(base::Error error);
  std::string missing_text() const;

  struct Place {
    int socket = -1;  // key into connections_; -1: has not come
    std::string origin;
  };

  Options options_;
  wire::Key key_;
  HostId host_{};
  Address address_;       // as announced
  Address unix_address_;  // the same, or where tcp callers are sent
  base::Descriptor poller_;
  base::Descriptor listener_;
  base::Descriptor tcp_listener_;  // only if the address is tcp
  Connections connections_;
  std::vector<Place> places_;      // by rank
  std::vector<Arrival> arrivals_;  // by rank
  std::string notes_;              // refusals that the final error should mention
  std::uint64_t greeted_ = 0;
  int came_ = 0;
  int strangers_ = 0;
  std::int64_t deadline_ns_;
  State state_ = State::gathering;
  base::Error error_;
};

}  // namespace unisono::group
