// SPDX-License-Identifier: BSD-3-Clause
// What ranks tell each other before they are connected: the address in a rank's RegionCard, and the
// datagrams by which one asks another for a connection. Each datagram carries a tag of the job's
// key. Pure functions; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "transport/remote_memory.hpp"
#include "wire/key.hpp"

namespace unisono::transport {

struct VerbsAddress {
  std::array<std::byte, 16> gid{};
  std::uint32_t lid = 0;
  std::uint32_t control = 0;  // number of the queue pair that takes requests
  bool operator==(const VerbsAddress&) const = default;
};

RegionCard card_of_verbs(const VerbsAddress& address);
// nullopt: it is not of this form.
std::optional<VerbsAddress> verbs_address_of(const RegionCard& card);

// A request names the sender's end of a connection, an answer the receiver's.
struct VerbsHandshake {
  enum class Kind : std::uint32_t { request = 1, answer = 2 };
  Kind kind = Kind::request;
  std::uint32_t from = 0;  // ranks
  std::uint32_t to = 0;
  std::uint32_t queue_pair = 0;
  std::uint32_t first_packet = 0;  // number of the first packet that this side sends
  std::uint32_t mtu = 0;           // as ibv_mtu
  std::uint64_t address = 0;  // request: of the word for consumed messages; answer: of the ring
  std::uint32_t key = 0;      // for remote access to it
  bool operator==(const VerbsHandshake&) const = default;
};

inline constexpr std::size_t kVerbsHandshakeBytes = 64;
using VerbsHandshakeBytes = std::array<std::byte, kVerbsHandshakeBytes>;

VerbsHandshakeBytes encode_verbs_handshake(const VerbsHandshake& handshake, const wire::Key& key);
// nullopt: of another job, or of another form.
std::optional<VerbsHandshake> decode_verbs_handshake(std::span<const std::byte> bytes,
                                                     const wire::Key& key);

}  // namespace unisono::transport
