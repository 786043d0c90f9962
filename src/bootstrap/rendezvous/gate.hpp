// SPDX-License-Identifier: BSD-3-Clause
// Gate: of a rank whose rendezvous is on another host, the part that lets the other ranks of its
// own host in. It listens before the rank says Hello, for the rendezvous may make the rank its
// host's gate: then the others are sent here. The gate says Hello for them over the rank's
// connection, objects to those who end, and hands on what the rendezvous answers; to a Welcome it
// adds its host's memory file and the pids for which the kernel vouches. So the rendezvous has one
// connection to each other host. Control path; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "bootstrap/rendezvous/line.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "bootstrap/rendezvous/reception.hpp"
#include "wire/key.hpp"

namespace unisono::bootstrap {

class Gate {
 public:
  static base::Result<std::unique_ptr<Gate>> open(const wire::Key& key, int ranks);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // For the rank's own Hello.
  std::uint64_t door() const { return door_; }

  // Lets ranks in until the rendezvous, which has sent the challenge, answers the rank's own Hello;
  // as Line::receive().
  base::Result<std::optional<Line::Arrival>> await_answer(Line& rendezvous, const Nonce& challenge,
                                                          const Nonce& own_hello,
                                                          std::int64_t deadline_ns);

  struct Handed {
    Welcome welcome;  // with the pids of this host, and no others
    base::Descriptor memory;
    std::vector<base::Descriptor> guests;  // their connections
  };
  // Hands the Welcome on, for a rank of its job. Errors: state (it tells of ranks on this host that
  // have not come), resources, system.
  base::Result<Handed> hand_on(Welcome welcome, int own_rank);
  // Tells those who have come.
  void refuse_all(const base::Error& error);

 private:
  // A rank that has come here, in this order.
  struct Guest {
    Reception::Number visitor = 0;
    Hello hello;
    pid_t pid = 0;
    bool refused = false;
  };

  Gate(const wire::Key& key, std::uint64_t door) : key_(key), door_(door) {}
  base::Status hear_guests(const Nonce& challenge);
  void let_in(Reception::Number visitor, const Hello& hello, const Nonce& challenge);
  void lose(Reception::Number visitor, const Nonce& challenge);
  void turn_away(const Refused& refused);
  void say(const Message& message, const Nonce& challenge);
  base::Status flush(const base::Descriptor& rendezvous);
  // The guest that has the rank's place; null if there is none.
  const Guest* seated(std::uint32_t rank) const;

  wire::Key key_;
  std::uint64_t door_;
  std::unique_ptr<Reception> reception_;
  std::vector<Guest> guests_;
  std::string unsent_;  // to the rendezvous
};

}  // namespace unisono::bootstrap
