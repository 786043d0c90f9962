// SPDX-License-Identifier: BSD-3-Clause
// Acceptor: accepts the connections of a job's ranks, for a rendezvous or a host relay. It sends
// each connection a Challenge and reads its Hello. It drops and counts rejected peers: those of
// another user, and those whose message is malformed or has no valid tag. An event's message is
// therefore signed for that connection's own Challenge. On a Hello the owner admits, refuses or
// closes the connection; of an admitted one it gets further messages, and the end. step() never
// waits: the owner polls descriptor(). One thread at a time.
//
// Connections that have sent no Hello are bounded. Beyond the bound, the Acceptor drops the oldest
// connection of the address with the most of them, after a last read. A rank that loses its
// connection this way connects again (rendezvous_client.cpp). When file descriptors have run out,
// the Acceptor drops all connections that have been silent for a while.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "bootstrap/address.hpp"
#include "bootstrap/rendezvous/descriptor_limit.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "bootstrap/socket.hpp"
#include "wire/key.hpp"

namespace unisono::bootstrap {

class Acceptor {
 public:
  // From 1 on, in the order in which connections are accepted.
  using ConnectionId = std::uint64_t;
  struct Connection {
    base::Descriptor socket;
    bool local = false;  // a Unix socket, so the kernel reports the peer
    Peer peer;
    std::string source;  // for messages and counts: address (IPv6: network of 64 bits) or pid
    Nonce nonce{};       // of the Challenge
    Nonce hello{};       // of the first Hello; zeros: none yet
    std::int64_t since_ns = 0;
    std::string received;
    bool admitted = false;
  };
  struct Event {
    ConnectionId connection = 0;
    std::optional<Message> message;  // nullopt: an admitted connection has ended
  };

  // `ranks`: at most so many connect. Raises the limit of descriptors for them if necessary.
  static base::Result<std::unique_ptr<Acceptor>> open(const wire::Key& key, int ranks);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  // Replaces a port of 0 by the one taken. At most two addresses.
  base::Status listen(Address& address);
  // Connections that wait to be accepted end.
  void close_listeners() { listeners_.clear(); }
  // With a socket that listens already. `local`: it is a Unix socket.
  base::Status listen(base::Descriptor listening, bool local);

  // Readable when step() has something to do.
  int descriptor() const { return poller_.get(); }
  // Error of code resources: there are no descriptors, and no connection is about to end.
  base::Result<std::vector<Event>> step();

  // Null if it has ended.
  Connection* find(ConnectionId connection);
  void admit(ConnectionId connection);
  // False if it has ended, or its buffer is full.
  bool send(ConnectionId connection, std::string_view frame, int attached = -1);
  // With a tag for its Hello.
  bool send_refused(ConnectionId connection, const Refused& refused);
  // The same for the connection's own Hello; then closes it.
  void refuse(ConnectionId connection, const base::Error& error);
  void refuse_admitted(const base::Error& error);
  void close(ConnectionId connection);
  // Hands over the admitted connections and forgets all.
  std::vector<base::Descriptor> release_admitted();

  int rejected_peers() const { return rejected_; }
  // For the error of a job whose ranks are missing: "; a process (10.0.0.2) was refused ...", or
  // nothing.
  std::string note_of_wrong_key() const;

 private:
  using Connections = std::map<ConnectionId, Connection>;

  Acceptor(const wire::Key& key, int ranks);
  base::Status accept_some(std::size_t listener, std::vector<Event>& events);
  base::Status send_challenge(Connection connection, std::vector<Event>& events);
  void make_room(std::vector<Event>& events);
  // The oldest of the source with the most connections without a Hello; end() if there is none.
  Connections::iterator connection_to_drop();
  void drop(Connections::iterator connection, std::vector<Event>& events);
  void drop_silent(std::vector<Event>& events);
  void read_from(Connections::iterator connection, std::vector<Event>& events);
  void take_messages(Connections::iterator connection, std::vector<Event>& events);
  void end_connection(Connections::iterator connection, std::vector<Event>& events);
  void erase(Connections::iterator connection);
  base::Status pause_or_fail();
  void pause(bool paused);
  void arm_silence_timer(bool running);

  wire::Key key_;
  std::size_t most_unidentified_;
  DescriptorLimit limit_;
  base::Descriptor poller_;
  base::Descriptor silence_timer_;  // a timer: readable when silent connections are to be dropped
  struct Listener {
    base::Descriptor socket;
    bool local = false;
  };
  std::vector<Listener> listeners_;
  Connections connections_;
  ConnectionId last_id_ = 0;
  std::size_t admitted_ = 0;
  std::size_t unidentified_ = 0;  // connections without a Hello
  int rejected_ = 0;
  std::string source_of_wrong_key_;  // the last connection with one; empty: none
  bool paused_ = false;              // accepts nothing until a connection ends
};

}  // namespace unisono::bootstrap
