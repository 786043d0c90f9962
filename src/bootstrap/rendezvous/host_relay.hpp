// SPDX-License-Identifier: BSD-3-Clause
// HostRelay: lets the other ranks of its host join through one rank, if the rendezvous is on
// another host. It listens before the rank sends its Hello, for the rendezvous may choose the rank
// as its host's relay and redirect the others to it. The relay sends their Hellos over the rank's
// connection, withdraws those of ranks that end, and passes on the answers. To a Welcome it adds
// its host's memory file and the pids that the kernel reports. So the rendezvous has one connection
// to each other host. Control path; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "bootstrap/rendezvous/acceptor.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "bootstrap/rendezvous/message_stream.hpp"
#include "wire/key.hpp"

namespace unisono::bootstrap {

class HostRelay {
 public:
  static base::Result<std::unique_ptr<HostRelay>> open(const wire::Key& key, int ranks);
  HostRelay(const HostRelay&) = delete;
  HostRelay& operator=(const HostRelay&) = delete;

  // The number of its socket (relay_address), for the rank's own Hello.
  std::uint64_t relay_socket() const { return relay_socket_; }

  // Relays until the rendezvous answers the rank's own Hello. `challenge`: of the rendezvous.
  // Results as of MessageStream::receive().
  base::Result<std::optional<MessageStream::Received>> await_answer(MessageStream& rendezvous,
                                                                    const Nonce& challenge,
                                                                    const Nonce& own_hello,
                                                                    std::int64_t deadline_ns);

  // The same without waiting; nullopt also if there is no answer yet. For use after the Welcome,
  // too.
  base::Result<std::optional<MessageStream::Received>> turn(MessageStream& rendezvous,
                                                            const Nonce& challenge,
                                                            const Nonce& own_hello);
  // This rank itself cannot start.
  void withdraw(const Withdrawal& own, const base::Descriptor& rendezvous, const Nonce& challenge);

  struct PassedOn {
    Welcome welcome;  // with pids for this host only
    base::Descriptor memory;
  };
  // Passes the Welcome on to the relayed ranks. Errors: state (it names ranks of this host that
  // have not joined through this relay), resources, system.
  base::Result<PassedOn> pass_on(Welcome welcome, int own_rank);
  // Tells all relayed ranks.
  void refuse_all(const base::Error& error);
  // To the relayed ranks.
  std::vector<base::Descriptor> release_connections();

 private:
  // In the order of their Hellos.
  struct RelayedRank {
    Acceptor::ConnectionId connection = 0;
    Hello hello;
    pid_t pid = 0;
    bool refused = false;
  };

  HostRelay(const wire::Key& key, std::uint64_t relay_socket)
      : key_(key), relay_socket_(relay_socket) {}
  base::Status step_acceptor(const Nonce& challenge);
  void relay_hello(Acceptor::ConnectionId connection, const Hello& hello, const Nonce& challenge);
  void relay_end(Acceptor::ConnectionId connection, const Nonce& challenge);
  void refuse_one(const Refused& refused);
  void queue(const Message& message, const Nonce& challenge);
  base::Status flush(const base::Descriptor& rendezvous);
  // Null if there is none that is not refused.
  const RelayedRank* find_relayed(std::uint32_t rank) const;

  wire::Key key_;
  std::uint64_t relay_socket_;
  std::unique_ptr<Acceptor> acceptor_;
  std::vector<RelayedRank> relayed_ranks_;
  std::string unsent_;  // to the rendezvous
};

}  // namespace unisono::bootstrap
