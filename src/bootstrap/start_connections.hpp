// SPDX-License-Identifier: BSD-3-Clause
// StartConnections: a rank's connections to the rendezvous while the job starts. Between the
// rendezvous and the start of the job they are the only way that needs neither the job's memory nor
// its datagrams. A rank that cannot go on tells all others by them, and the end of a connection
// between hosts shows that a rank is lost. They form a tree: the server, the ranks of its host and
// the host relays, their ranks. step() and tell() never wait. One thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "bootstrap/rendezvous/host_relay.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "bootstrap/rendezvous/message_stream.hpp"
#include "bootstrap/rendezvous/rendezvous.hpp"
#include "wire/key.hpp"

namespace unisono::bootstrap {

class StartConnections {
 public:
  // How this rank has joined.
  struct Place {
    int rank = 0;
    wire::Key key{};
    Nonce challenge{};  // of the server or relay
    Nonce hello{};      // of this rank
    bool rank_zero_serves = false;
  };
  // `stream`: to the server or to the host relay. `relay`: null if this rank is none.
  StartConnections(const Place& place, MessageStream stream, std::unique_ptr<HostRelay> relay)
      : place_(place), stream_(std::move(stream)), relay_(std::move(relay)) {}
  StartConnections(const StartConnections&) = delete;
  StartConnections& operator=(const StartConnections&) = delete;

  // This rank serves the rendezvous.
  void serve(std::unique_ptr<Rendezvous> server) { server_ = std::move(server); }

  // Reads what has come, and passes it on.
  void step();
  // Why another rank cannot start; nullopt: none has said so.
  const std::optional<base::Error>& failure() const { return failure_; }
  // Ranks of other hosts whose connection has ended without a word, since the last call.
  std::vector<int> take_lost();
  // The connection to the server or relay.
  bool has_ended() const { return has_ended_; }
  // This rank cannot start: all others are told, unless they told this one.
  void tell(const base::Error& error);

  // The job has started. No rank joins any more; the connections stay open.
  void end_start();
  bool is_connected() const { return stream_.socket().valid(); }
  // After end_start(): the other ends of such connections, if this rank serves or is a relay.
  const std::vector<base::Descriptor>& accepted() const { return accepted_; }

 private:
  Place place_;
  MessageStream stream_;
  std::unique_ptr<HostRelay> relay_;
  std::unique_ptr<Rendezvous> server_;
  std::vector<base::Descriptor> accepted_;
  std::vector<int> lost_;
  std::size_t seen_lost_ = 0;  // of the server's
  bool has_ended_ = false;     // the stream
  std::optional<base::Error> failure_;
};

}  // namespace unisono::bootstrap
