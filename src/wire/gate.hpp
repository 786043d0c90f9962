// SPDX-License-Identifier: BSD-3-Clause
// Gate: the door of a rank through which packets leave with a tag and come in if they are what they
// claim to be. Everything else is dropped, counted by reason, and has no effect; a reply is never
// sent. Knows no socket. One object per rank; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "wire/drops.hpp"
#include "wire/key.hpp"
#include "wire/packet.h"
#include "wire/sequence.hpp"

namespace unisono::wire {

using Header = unisono_packet;  // in the machine's order
inline constexpr std::size_t kHeaderBytes = UNISONO_PACKET_BYTES;
inline constexpr std::uint32_t kToGroup = UNISONO_PACKET_GROUP;    // as Header::target
inline constexpr std::uint64_t kNoPlace = UNISONO_PACKET_NONE;     // as Header::place or flag
inline constexpr std::uint64_t kForward = UNISONO_PACKET_FORWARD;  // added to Header::flag

// A header as it goes out.
using Envelope = std::array<std::byte, kHeaderBytes>;

enum class Kind : std::uint8_t {
  put = UNISONO_PACKET_PUT,
  nack = UNISONO_PACKET_NACK,
  status = UNISONO_PACKET_STATUS,
  query = UNISONO_PACKET_QUERY,
  answer = UNISONO_PACKET_ANSWER,
  probe = UNISONO_PACKET_PROBE,
  get = UNISONO_PACKET_GET,
  piece = UNISONO_PACKET_PIECE,
};

struct Parsed {
  Drop drop = Drop::none;  // the rest holds if it is none
  Header header{};
  std::span<const std::byte> payload;  // in the datagram that was parsed
};

// The form and the addressing of a datagram, without its tag: see unisono_packet_check().
Parsed parse(std::span<const std::byte> datagram, const unisono_receiver& receiver);

class Gate {
 public:
  // How many packets of one sender may overtake another that is still accepted.
  static constexpr std::size_t kReplayNumbers = 1024;

  Gate(const Key& key, int rank, int ranks);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  const unisono_receiver& identity() const { return identity_; }

  // A header of this rank; the caller fills in what the kind needs and hands it to seal().
  Header header(Kind kind, std::uint32_t target, std::uint64_t sequence) const;
  // Sets length and tag. The payload of at most 65535 bytes goes right behind the envelope.
  Envelope seal(Header header, std::span<const std::byte> payload) const;

  // Form, job, target and tag. For who tells repetitions by other means.
  Parsed open(std::span<const std::byte> datagram);
  // open(), and each sequence number of a sender once: those to this rank and those to the group
  // are counted apart.
  Parsed admit(std::span<const std::byte> datagram);

  const Drops& drops() const { return drops_; }

 private:
  using Window = ReplayWindow<std::uint64_t, kReplayNumbers>;
  struct Windows {
    Window link, group;
  };

  Parsed dropped(Drop reason);

  Key key_;
  unisono_receiver identity_;
  // By sender, from its first genuine packet on, so that a stranger cannot make them.
  std::vector<std::unique_ptr<Windows>> windows_;
  Drops drops_;
};

}  // namespace unisono::wire
