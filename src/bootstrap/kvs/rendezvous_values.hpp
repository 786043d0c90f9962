// SPDX-License-Identifier: BSD-3-Clause
// The values by which ranks of several hosts agree on a rendezvous address, in the launcher's
// key-value store: each rank's host, its addresses and the rank's public key; then rank 0's
// rendezvous address, its public key, and the job's key sealed for each rank. Other processes may
// read the store, so no value is secret. A value that is read comes from outside: it is bounded and
// checked. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "bootstrap/identity.hpp"
#include "bootstrap/kvs/key_exchange.hpp"
#include "transport/ip/interfaces.hpp"
#include "transport/ip/ip.hpp"
#include "transport/ip/network_list.hpp"

namespace unisono::bootstrap {

// By each rank, about its host.
struct HostValue {
  static constexpr std::size_t kMostAddresses = 16;  // as many as fit into a value

  HostId host{};
  PublicKey key{};  // of the rank, not of its host
  std::vector<transport::IpAddress> addresses;
  bool operator==(const HostValue&) const = default;
};

// The addresses of a host that the user's list allows, without those that other hosts do not reach
// (loopback, link-local).
std::vector<transport::IpAddress> reachable_addresses(
    std::span<const transport::LocalAddress> locals, const transport::NetworkList& allowed);

std::string format_value(const HostValue& value);
base::Result<HostValue> parse_host_value(std::string_view text);

// The addresses of all hosts but `own`, each host once. An address that `own` has as well is left
// out, since it leads back to `own`. An example is a bridge's address that exists on all hosts.
std::vector<transport::IpAddress> addresses_of_other_hosts(const HostValue& own,
                                                           std::span<const HostValue> values);

struct RendezvousAddress {
  transport::Endpoint endpoint;
  PublicKey key{};  // of rank 0
  bool operator==(const RendezvousAddress&) const = default;
};
// By rank 0: its choice, or why there is none.
using AddressValue = std::variant<RendezvousAddress, base::Error>;

// A text of an error that is too long is cut.
std::string format_value(const AddressValue& value);
base::Result<AddressValue> parse_address_value(std::string_view text);

// By rank 0: the job's key, sealed for kSealedInValue consecutive ranks; the first value begins
// with rank 1.
inline constexpr std::size_t kSealedInValue = 11;
using SealedKeysValue = std::vector<SealedSecret>;
std::string format_value(const SealedKeysValue& value);
base::Result<SealedKeysValue> parse_sealed_keys_value(std::string_view text);

}  // namespace unisono::bootstrap
