// SPDX-License-Identifier: BSD-3-Clause
// Datagrams: unreliable, unordered messages of bounded length between the ranks of a job. They may
// be lost, duplicated, reordered or forged, but are never cut or joined. The layers above repair
// losses and check the packet's tag (wire/, reliable/). One object belongs to one rank; one thread
// at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/life/lasting.hpp"

namespace unisono::transport {

// As a target: all other ranks of the job, by one multicast datagram.
inline constexpr int kGroup = -1;

struct DatagramLimits {
  std::string_view name;        // "udp", "virtual"
  std::size_t max_payload = 0;  // bytes of one datagram, head and body together
  std::size_t batch = 1;        // datagrams of one call from which on more bring nothing
  bool multicast = false;       // kGroup is a legal target
  // Bytes of one datagram to the group; 0: as max_payload.
  std::size_t max_group_payload = 0;
};

// One datagram: head, then body. Either may be empty, not both. The memory may be reused when
// send() returns.
struct Outgoing {
  int target = kGroup;  // rank in the job, not the own one; or kGroup
  std::span<const std::byte> head{};
  std::span<const std::byte> body{};
  // The receiver has to act on it, though it computes and waits for nothing. Such datagrams may
  // overtake others.
  bool urgent = false;
};

// One received datagram in memory of the transport. The caller may write to it and owns it until
// the next receive(). The sender's network address is not reported: the contents must prove who
// sent it. Aligned to 8 bytes unless the network joined datagrams on the way.
struct Incoming {
  std::span<std::byte> bytes{};
};

struct DatagramCounts {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t short_sends = 0;  // calls of send() that took only a part for lack of room
  std::uint64_t refused = 0;      // refused by the system for another reason, and lost
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

  // Sends from the front and returns how many datagrams were taken. If there is no room, it takes
  // fewer than all, and the caller retries the rest. Never blocks. A datagram that the system
  // refuses for good (no route, no listener at the port) counts as taken and is lost; see counts()
  // and last_error(). A target or length outside limits() is a broken invariant.
  virtual std::size_t send(std::span<const Outgoing> datagrams) = 0;
  // Whether datagrams of one call, all to `target` and of one length, cost little more than one.
  virtual bool joins(int /*target*/) const { return false; }

  // Fills `datagrams` from the front with received ones and returns how many; 0: there are none.
  // Invalidates the datagrams of the last call. Never blocks. A rank does not receive its own
  // datagrams.
  virtual std::size_t receive(std::span<Incoming> datagrams) = 0;

  // A descriptor to sleep on. poll(2) reports it readable while receive() would return something,
  // and when there is room again after a short send(). -1 if there is none.
  virtual int descriptor() const { return -1; }
  // Call it before each sleep on the descriptor. False: receive() may return something already.
  // `only_urgent`: other datagrams than urgent ones need not end the sleep.
  virtual bool may_sleep(bool /*only_urgent*/) { return true; }
  // Whether receive() has something only while the descriptor is readable, also without a call of
  // may_sleep(). False: that is not known, or something is left of the last call.
  virtual bool descriptor_tells() const { return false; }

  // Call it if the probe shows that the network does not carry multicast
  // (transport/multicast_probe.hpp). After that, kGroup is no legal target.
  virtual void give_up_multicast(std::string /*note*/) {}
  // Why there is no multicast; empty if it works or was not requested.
  virtual const std::string& multicast_note() const {
    static const std::string& none = base::lasting(std::string());
    return none;
  }

  // Multicast may have a second carrier. Call it if the probe shows that not all members hear each
  // other by the first; all members then probe again. True if there is one.
  virtual bool has_other_multicast() const { return false; }
  virtual void take_other_multicast() {}
  // Other members need this to send urgent datagrams to this one. Probes carry it. 0: they need
  // nothing.
  virtual std::uint64_t multicast_card() const { return 0; }
  virtual void meet_member(int /*rank*/, std::uint64_t /*card*/) {}
  // Why this rank has ceased to multicast: where, what, and what to do. Empty: it has not.
  virtual const std::string& multicast_loss() const {
    static const std::string& none = base::lasting(std::string());
    return none;
  }

  virtual DatagramCounts counts() const = 0;
  // The system's text for the last refused datagram; empty if there was none. Used in the message
  // of a caller that gives up.
  virtual std::string last_error() const { return {}; }
};

}  // namespace unisono::transport
