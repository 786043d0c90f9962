// SPDX-License-Identifier: BSD-3-Clause
// Roster: which ranks of a job have joined a rendezvous, over which connection, and which of them
// relay for their hosts. Also the texts of errors about that. Pure; one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bootstrap/rendezvous/acceptor.hpp"
#include "bootstrap/rendezvous/message.hpp"

namespace unisono::bootstrap {

struct JoinedRank {
  Hello hello;
  std::uint32_t pid = 0;  // as the kernel reports it; 0: on another host than the server
  Acceptor::ConnectionId connection = 0;  // 0: the rank has not joined
  bool via_relay = false;                 // the connection is that of its host's relay
  std::string origin;                     // for messages
};

class Roster {
 public:
  explicit Roster(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  // By rank, also those that have not joined.
  std::span<const JoinedRank> ranks() const { return ranks_; }
  int joined() const { return joined_; }
  bool is_complete() const { return static_cast<std::size_t>(joined_) == ranks_.size(); }
  bool has_joined(int rank) const { return ranks_[static_cast<std::size_t>(rank)].connection != 0; }
  bool has_local_rank() const;

  // The rank is `hello.rank`, which has not joined. The first rank of another host without a relay
  // becomes that host's relay.
  void add(JoinedRank rank);
  // These are null if there is none.
  const JoinedRank* relay_of(const HostId& host) const;
  // The rank whose own connection it is.
  const JoinedRank* find(Acceptor::ConnectionId connection) const;
  const JoinedRank* find(Acceptor::ConnectionId connection, const Nonce& hello) const;

  // The error of a second process that joins as a rank. missing_text() mentions it.
  base::Error claimed_twice(std::uint32_t rank, const std::string& origin);
  // The ranks that have not joined within the time, with the second processes.
  std::string missing_text(std::int64_t timeout_ns) const;

 private:
  std::vector<JoinedRank> ranks_;
  std::map<HostId, std::uint32_t> relays_;  // rank by host
  std::string refusals_;
  int joined_ = 0;
};

}  // namespace unisono::bootstrap
