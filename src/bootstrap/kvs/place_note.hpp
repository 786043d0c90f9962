// SPDX-License-Identifier: BSD-3-Clause
// What ranks write on the launcher's board ((board.hpp)) to agree on where they meet: each, which
// host it is on, by which addresses that is known, and its public key; then rank 0, where it
// listens, its public key, and the job's key sealed for each rank. Others may read the board, so
// nothing on it is secret. The notes come back from outside, so they are bounded and checked. Pure
// functions; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "bootstrap/kvs/key_exchange.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "transport/udp/interfaces.hpp"
#include "transport/udp/ip.hpp"
#include "transport/udp/network_list.hpp"

namespace unisono::bootstrap {

struct HostNote {
  static constexpr std::size_t kMostAddresses = 16;  // so many fit into a note

  HostId host{};
  PublicKey key{};  // of the rank, not of its host
  std::vector<transport::IpAddress> addresses;
  bool operator==(const HostNote&) const = default;
};

// Of a host: what the user's list allows of its addresses, but for those that other hosts do not
// reach: loopback and link-local ones.
std::vector<transport::IpAddress> noted_addresses(std::span<const transport::LocalAddress> locals,
                                                  const transport::NetworkList& allowed);

std::string write_note(const HostNote& note);
base::Result<HostNote> read_host_note(std::string_view text);

// The addresses of the hosts besides `own`, each host once. An address that is `own`'s too leads to
// itself, as that of a bridge which all hosts have.
std::vector<transport::IpAddress> others_addresses(const HostNote& own,
                                                   std::span<const HostNote> notes);

struct MeetingPlace {
  transport::Endpoint endpoint;
  PublicKey key{};  // of rank 0
  bool operator==(const MeetingPlace&) const = default;
};
// Or why there is none.
using PlaceNote = std::variant<MeetingPlace, base::Error>;

// What does not fit of an error's text is cut off.
std::string write_note(const PlaceNote& note);
base::Result<PlaceNote> read_place_note(std::string_view text);

// The job's key, sealed for some ranks in their order. Ranks from 1 on are dealt to notes, so many
// to each.
inline constexpr std::size_t kSealedInNote = 11;
using SealedNote = std::vector<SealedSecret>;
std::string write_note(const SealedNote& note);
base::Result<SealedNote> read_sealed_note(std::string_view text);

}  // namespace unisono::bootstrap
