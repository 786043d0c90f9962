// SPDX-License-Identifier: BSD-3-Clause
// Reception: where the ranks of a job come in, at a rendezvous or a gate. It challenges whoever
// connects and hears a Hello; what has no right tag, is malformed or of another user is dropped and
// counted. What it reports has been signed for the visitor's own challenge; the owner keeps,
// refuses or closes a visitor at its Hello, and hears of kept ones what they say and that they have
// gone. It never waits: the owner polls descriptor() and calls step(). One thread at a time.
//
// Connections that have not said Hello are bounded. Beyond the bound the address with the most of
// them loses its oldest, after a last look at what that has sent; a rank whose connection is lost
// this way connects again (meeting.cpp). The same happens after a while to all that are silent when
// file descriptors have run out.
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
#include "wire/key.hpp"

namespace unisono::bootstrap {

class Reception {
 public:
  // Connections are numbered from 1 on, in the order of arrival.
  using Number = std::uint64_t;
  struct Visitor {
    base::Descriptor socket;
    bool local = false;  // Unix socket, so that the peer is known
    Peer peer;
    std::string source;  // for people and to count by: address (IPv6: network of 64 bits) or pid
    Nonce nonce{};       // of its Challenge
    Nonce hello{};       // of its first Hello; zeros: has said none
    std::int64_t since_ns = 0;
    std::string received;
    bool kept = false;
  };
  struct Event {
    Number visitor = 0;
    std::optional<Message> message;  // empty: a kept visitor has gone, and is forgotten
  };

  // For so many ranks at most. The limit of descriptors is raised for them if it has to be.
  static base::Result<std::unique_ptr<Reception>> open(const wire::Key& key, int ranks);
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;
  // A port of 0 becomes the one taken. At most two addresses.
  base::Status listen(Address& address);
  // What listens already; `local`: a Unix socket.
  base::Status listen(base::Descriptor listening, bool local);

  // Readable when step() has something to do.
  int descriptor() const { return poller_.get(); }
  // Error of code resources: there are no descriptors, and none is about to become free.
  base::Result<std::vector<Event>> step();

  // Null if it has gone.
  Visitor* find(Number visitor);
  void keep(Number visitor);
  // False if it is gone, or did not take it.
  bool send(Number visitor, std::string_view frame, int attached = -1);
  // Tells it of a refusal, with the tag that its Hello asks for.
  bool send_refused(Number visitor, const Refused& refused);
  // The same of itself, and closes.
  void refuse(Number visitor, const base::Error& error);
  void refuse_kept(const base::Error& error);
  void close(Number visitor);
  // The connections of those kept, which are forgotten here.
  std::vector<base::Descriptor> release_kept();

  int strangers() const { return strangers_; }

 private:
  using Visitors = std::map<Number, Visitor>;

  Reception(const wire::Key& key, int ranks);
  base::Status accept_some(std::size_t listener, std::vector<Event>& events);
  base::Status greet(Visitor visitor, std::vector<Event>& events);
  void make_room(std::vector<Event>& events);
  // Of the source with the most that have not said Hello, the oldest; end() if all have.
  Visitors::iterator most_dispensable();
  void evict(Visitors::iterator visitor, std::vector<Event>& events);
  void evict_silent(std::vector<Event>& events);
  void read_from(Visitors::iterator visitor, std::vector<Event>& events);
  void take_messages(Visitors::iterator visitor, std::vector<Event>& events);
  void lose(Visitors::iterator visitor, std::vector<Event>& events);
  void erase(Visitors::iterator visitor);
  base::Status pause_or_fail();
  void pause(bool paused);
  void set_patience(bool running);

  wire::Key key_;
  std::size_t most_unknown_;
  DescriptorLimit limit_;
  base::Descriptor poller_;
  base::Descriptor patience_;  // a timer: readable when the silent have to go
  struct Listener {
    base::Descriptor socket;
    bool local = false;
  };
  std::vector<Listener> listeners_;
  Visitors visitors_;
  Number greeted_ = 0;
  std::size_t kept_ = 0;
  std::size_t unknown_ = 0;  // have not said Hello
  int strangers_ = 0;
  bool paused_ = false;  // nobody is let in until somebody has gone
};

}  // namespace unisono::bootstrap
