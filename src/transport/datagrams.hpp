// SPDX-License-Identifier: BSD-3-Clause
// Datagrams: unreliable, unordered messages of bounded length between the ranks of a job. What is
// sent may be lost, doubled, overtaken, or made up by a stranger; it is never cut or joined. Order,
// repair and the check of the packet's tag belong to who calls this (wire/, reliable/). One object
// belongs to one rank; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace unisono::transport {

// As a target: every other rank of the job, by one datagram that the network multiplies.
inline constexpr int kGroup = -1;

struct DatagramLimits {
  std::string_view name;        // "udp", "virtual"
  std::size_t max_payload = 0;  // bytes of one datagram, head and body together
  std::size_t batch = 1;        // datagrams of one call from which on more bring nothing
  bool multicast = false;       // kGroup is a legal target
};

// One datagram: head, then body. Either may be empty, not both. The memory may be reused when
// send() returns.
struct Outgoing {
  int target = kGroup;  // rank in the job, not the own one; or kGroup
  std::span<const std::byte> head{};
  std::span<const std::byte> body{};
};

// One datagram in memory of the transport, which the caller may write to, and which is the
// caller's until the next receive(). Who sent it is for its contents to prove: the network's word
// for it is not given. Aligned to 8 bytes unless the network joined datagrams on the way.
struct Incoming {
  std::span<std::byte> bytes{};
};

struct DatagramCounts {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t short_sends = 0;  // calls of send() for which there was not room enough
  std::uint64_t refused = 0;      // the system refused them for another reason: lost
  std::uint64_t too_long = 0;     // came longer than max_payload: dropped
  std::uint64_t overflowed = 0;   // came while the system's buffer was full: dropped
  bool operator==(const DatagramCounts&) const = default;
};

class Datagrams {
 public:
  virtual ~Datagrams() = default;
  Datagrams() = default;
  Datagrams(const Datagrams&) = delete;
  Datagrams& operator=(const Datagrams&) = delete;

  virtual const DatagramLimits& limits() const = 0;
  virtual int rank() const = 0;

  // Sends from the front, and returns how many were taken: fewer than all if there is no room now,
  // so that the caller comes back with the others. Never blocks. A datagram that the system refuses
  // for good (no route, nobody at the port) counts as taken, and is lost; counts() and last_error()
  // tell. A target or length outside limits() is a broken invariant.
  virtual std::size_t send(std::span<const Outgoing> datagrams) = 0;

  // Fills `datagrams` from the front with what has come and returns how many; 0: nothing is there.
  // Ends the life of what the last call gave. Never blocks. A rank does not receive what it sent.
  virtual std::size_t receive(std::span<Incoming> datagrams) = 0;

  // To sleep on: poll(2) reports it readable while receive() would give something and, after a
  // send() that was short, when there is room again. -1 where there is nothing to sleep on.
  virtual int descriptor() const { return -1; }

  // The network does not carry multicast after all (transport/multicast_probe.hpp): kGroup is no
  // legal target any more.
  virtual void give_up_multicast(std::string /*note*/) {}
  // Why there is no multicast; empty if there is, or none was asked for.
  virtual const std::string& multicast_note() const {
    static const std::string none;
    return none;
  }

  virtual DatagramCounts counts() const = 0;
  // What the system said when it last refused something; empty if it never did. For the message of
  // who gives up.
  virtual std::string last_error() const { return {}; }
};

}  // namespace unisono::transport
