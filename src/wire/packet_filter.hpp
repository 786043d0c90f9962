// SPDX-License-Identifier: BSD-3-Clause
// PacketFilter: the packet filter of a rank. Outgoing packets get a tag; incoming packets pass if
// their form, addressing and tag are right. All others are dropped, counted by reason, and have no
// effect; no reply is ever sent. It knows no socket. One object per rank; one thread at a time.
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

using Header = unisono_packet;  // in the machine's byte order
inline constexpr std::size_t kHeaderBytes = UNISONO_PACKET_BYTES;
inline constexpr std::uint32_t kToGroup = UNISONO_PACKET_GROUP;    // as Header::target
inline constexpr std::uint64_t kNoPlace = UNISONO_PACKET_NONE;     // as Header::place or flag
inline constexpr std::uint64_t kForward = UNISONO_PACKET_FORWARD;  // added to Header::flag

// A header as it is sent.
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
  Drop drop = Drop::none;  // the other members hold only if this is none
  Header header{};
  std::span<const std::byte> payload;  // in the datagram that was parsed
};

// The form and the addressing of a datagram, without its tag: see unisono_packet_check().
Parsed parse(std::span<const std::byte> datagram, const unisono_receiver& receiver);

class PacketFilter {
 public:
  // How many packets of one sender may overtake another that is still accepted.
  static constexpr std::size_t kReplayNumbers = 1024;

  PacketFilter(const Key& key, int rank, int ranks);
  PacketFilter(const PacketFilter&) = delete;
  PacketFilter& operator=(const PacketFilter&) = delete;

  const unisono_receiver& identity() const { return identity_; }

  // A header of this rank; the caller fills in what the kind needs and hands it to seal().
  Header header(Kind kind, std::uint32_t target, std::uint64_t sequence) const;
  // Sets length and tag. The payload of at most 65535 bytes goes right behind the envelope.
  Envelope seal(Header header, std::span<const std::byte> payload) const;

  // Checks form, job, target and tag; for callers that detect repetitions by other means.
  Parsed open(std::span<const std::byte> datagram);
  // open(), and accepts each sequence number of a sender once. Numbers to this rank and to the
  // group are counted apart.
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
  // By sender; made at its first genuine packet, so that a forged packet cannot allocate memory.
  std::vector<std::unique_ptr<Windows>> windows_;
  Drops drops_;
};

}  // namespace unisono::wire
