// SPDX-License-Identifier: BSD-3-Clause
// Link: what a rank knows of the packets between it and one peer. Sending: which packets the peer
// may still lack; they stay in the pool, and what does not fit there or is too far ahead waits in a
// backlog. Receiving: which have come, and which flags wait for the rest of their message. No
// sockets and no clock; Reliable sends what comes out of it. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "reliable/link/arrivals.hpp"
#include "reliable/link/packet_pool.hpp"
#include "reliable/link/retry.hpp"
#include "reliable/path/paths.hpp"
#include "wire/packet_filter.hpp"

namespace unisono::reliable {

// In a put or a get: the number before which all that the target has put has come, in two fields
// of the header (wire/packet.h).
inline constexpr int kAcknowledgedBits = 48;
inline void set_acknowledged(wire::Header& header, std::uint64_t number) {
  header.hop = static_cast<std::uint16_t>(number);
  header.communicator = static_cast<std::uint32_t>(number >> 16);
}
inline std::uint64_t acknowledged_in(const wire::Header& header) {
  return header.hop | std::uint64_t{header.communicator} << 16;
}

// `position` of a status that wants one in return.
inline constexpr std::uint32_t kWantsAnswer = 1;

// A packet that has its number but no place in the pool yet.
struct WaitingPacket {
  wire::Header header;
  std::vector<std::byte> payload;
};

class SendingSide {
 public:
  // The number of the next packet; each is used once.
  std::uint64_t take_number() { return next_++; }
  // Fragments of the message that is being put, and so the place of the next one in it.
  std::uint32_t position = 0;

  bool has_room() const { return unsent_ - lacking_ < kWindow; }
  // The packet with the lowest number that was not sent yet is in the pool.
  void note_sent(std::uint32_t index) { kept_[unsent_++ % kWindow] = index; }

  std::uint64_t lacking() const { return lacking_; }  // the first that the peer may lack
  std::uint64_t unsent() const { return unsent_; }
  std::uint64_t end() const { return next_; }
  std::uint64_t under_way() const { return unsent_ - lacking_; }
  bool is_settled() const { return lacking_ == next_; }

  // The pool's index of a packet that was sent and may be lacking; kNone for another number.
  std::uint32_t kept(std::uint64_t number) const {
    if (wire::is_before(number, lacking_) || !wire::is_before(number, unsent_)) {
      return PacketPool::kNone;
    }
    return kept_[number % kWindow];
  }
  // The peer has all before `number`: calls release(index) for those that it may have lacked.
  template <class Release>
  void acknowledge(std::uint64_t number, const Release& release) {
    if (wire::is_before(unsent_, number)) return;  // never sent: not to be believed
    while (wire::is_before(lacking_, number)) release(kept_[lacking_++ % kWindow]);
  }
  // Gives up all packets that have a number: the peer is taken to have them.
  void skip_unsent() { lacking_ = unsent_ = next_; }
  // The number whose low bits a packet carries. A packet, above all a repetition, may be old when
  // it comes. Its number is then before `lacking()` and says nothing new. There are so many bits
  // that no job sends enough packets meanwhile to hide that.
  std::uint64_t complete_number(std::uint64_t low_bits) const {
    constexpr int kRest = 64 - kAcknowledgedBits;
    return lacking_ + static_cast<std::uint64_t>(
                          static_cast<std::int64_t>((low_bits - lacking_) << kRest) >> kRest);
  }

  std::deque<WaitingPacket> backlog;
  RetryTimer ask;  // for an acknowledgement

 private:
  std::uint64_t next_ = 1;
  std::uint64_t unsent_ = 1;
  std::uint64_t lacking_ = 1;
  std::array<std::uint32_t, kWindow> kept_{};
};

// A flag that may not be raised before all of [first, last] has come.
struct WaitingFlag {
  std::uint64_t first, last;
  std::uint64_t flag, value;  // as in the packet
};

class ReceivingSide {
 public:
  Arrivals arrivals;
  std::vector<WaitingFlag> flags;
  RetryTimer lack;         // until the peer is asked to repeat
  bool lacks_gap = false;  // and it runs for a gap
  bool awaited = false;    // somebody waits for this peer, since the last request
  std::uint64_t told = 1;  // the peer knows that all before has come

  // Packet `number` has come, `position`-th of its message; if it is the last, its flag is given.
  // Gives the flag to be raised now, if one is.
  const WaitingFlag* note(std::uint64_t number, std::uint32_t position, std::uint64_t flag,
                          std::uint64_t value);

 private:
  WaitingFlag raised_{};
};

struct Link {
  SendingSide sending;
  ReceivingSide receiving;
  std::uint64_t control_number = 1;                    // of the next request or answer
  wire::ReplayWindow<std::uint64_t, 64> control_seen;  // of the peer's
  bool ended = false;    // the peer has left: what it lacks it does not need
  bool watched = false;  // has a timer that runs
  PathReport probes;     // of the peer that have come
  // When the peer was first and last asked something since it was last heard; 0: not.
  std::int64_t asked_ns = 0, asked_again_ns = 0;
};

}  // namespace unisono::reliable
