// SPDX-License-Identifier: BSD-3-Clause
// What ranks write on the launcher's board (group/board) to agree on where they meet: each, which
// host it is on and by which addresses that is known; then rank 0, where it listens. The notes come
// back from outside, so they are bounded and checked. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "group/bootstrap/message.hpp"
#include "transport/udp/interfaces.hpp"
#include "transport/udp/ip.hpp"
#include "transport/udp/network_list.hpp"

namespace unisono::group {

struct HostNote {
  static constexpr std::size_t kMostAddresses = 16;  // so many fit into a note

  HostId host{};
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
  std::string key;  // of the job
  bool operator==(const MeetingPlace&) const = default;
};
// Or why there is none.
using PlaceNote = std::variant<MeetingPlace, base::Error>;

// What does not fit of an error's text is cut off.
std::string write_note(const PlaceNote& note);
base::Result<PlaceNote> read_place_note(std::string_view text);

}  // namespace unisono::group
