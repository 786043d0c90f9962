// SPDX-License-Identifier: BSD-3-Clause
// Frames for the NIC program, built layer by layer as a sender would, independently of the
// program's code. The program's output is compared with these byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nic/program/tables.h"

namespace unisono::nic::test {

using Frame = std::vector<std::byte>;
using Words = std::vector<std::uint64_t>;

// Where the layers begin.
inline constexpr std::size_t kIp = 14;
inline constexpr std::size_t kUdp = kIp + 20;
inline constexpr std::size_t kPacket = kUdp + 8;
inline constexpr std::size_t kPayload = kPacket + UNISONO_PACKET_BYTES;

// The address of a rank's host: 10.0.0.(rank + 1), 02:00:00:00:00:(rank + 1).
unisono_nic_address host_address(int rank);
unisono_nic_address group_address();

// A packet with all that its kind has in common; the rest of the fields are the caller's.
unisono_packet packet_of(std::uint8_t kind, const unisono_nic_id& id, int sender,
                         std::uint64_t sequence);

// The whole frame, with lengths, checksum and tag; and room behind the payload for more words,
// which the packet says nothing of.
Frame make_frame(const unisono_nic_address& from, const unisono_nic_address& to,
                 unisono_packet packet, std::span<const std::uint64_t> payload,
                 const unisono_key& key, std::size_t more_words = 0);

// The packet in a frame, and its payload.
unisono_packet packet_in(const Frame& frame);
Words payload_in(const Frame& frame);

}  // namespace unisono::nic::test
