// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/kvs/choose_rendezvous_address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "bootstrap/kvs/key_exchange.hpp"
#include "bootstrap/kvs/rendezvous_values.hpp"
#include "bootstrap/socket.hpp"
#include "transport/ip/network_settings.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;
using base::Status;
using transport::IpAddress;

constexpr std::string_view kHostKey = "host";
constexpr std::string_view kAddressKey = "address";

// The key of a value with sealed keys, and a rank's place among all of them; rank 0 has none.
std::string sealed_key(std::size_t value) { return fmt::format("sealed{}", value); }
std::size_t sealed_number(int rank) { return static_cast<std::size_t>(rank) - 1; }

// One rank's part in the choice.
class AddressChoice {
 public:
  AddressChoice(KeyValueStore& store, const RankOfJob& own, EphemeralKeys keys)
      : store_(store),
        rank_(own.rank),
        ranks_(own.ranks),
        user_key_(own.key),
        keys_(std::move(keys)) {}

  Result<ChosenRendezvous> run(const transport::NetworkSettings& network);

 private:
  // For rank 0.
  Status publish_choice(const transport::NetworkSettings& network);
  Result<RendezvousAddress> listen(const transport::NetworkSettings& network);
  Result<IpAddress> choose(const transport::NetworkSettings& network,
                           const std::vector<HostValue>& others) const;
  Result<std::vector<HostValue>> read_other_ranks() const;
  Result<std::vector<SealedKeysValue>> seal(const std::vector<HostValue>& others);
  // For the other ranks.
  Result<JobSecret> open_secret(const PublicKey& rank0) const;

  KeyValueStore& store_;
  int rank_;
  int ranks_;
  const std::string& user_key_;
  EphemeralKeys keys_;
  JobSecret secret_;
  std::vector<SealedKeysValue> sealed_;
  std::vector<transport::LocalAddress> locals_;
  HostValue host_;
  Descriptor listener_;  // of rank 0
};

Result<ChosenRendezvous> AddressChoice::run(const transport::NetworkSettings& network) {
  UNISONO_ASSIGN(locals_, transport::local_addresses());
  UNISONO_ASSIGN(host_.host, own_host_id());
  host_.key = keys_.public_key();
  host_.addresses = reachable_addresses(locals_, network.networks);
  UNISONO_TRY(store_.put(kHostKey, format_value(host_)));
  UNISONO_TRY(store_.fence());
  if (rank_ == 0) UNISONO_TRY(publish_choice(network));
  UNISONO_TRY(store_.fence());
  UNISONO_ASSIGN(const std::string text, store_.get(0, kAddressKey));
  UNISONO_ASSIGN(const AddressValue value, parse_address_value(text));
  if (const Error* error = std::get_if<Error>(&value)) return *error;
  const RendezvousAddress& chosen = std::get<RendezvousAddress>(value);
  if (rank_ != 0) {
    UNISONO_ASSIGN(secret_, open_secret(chosen.key));
  }
  return ChosenRendezvous{
      {Address::Kind::tcp, transport::ip_text(chosen.endpoint.address), chosen.endpoint.port},
      user_key_.empty() ? secret_.key_text() : user_key_,
      std::move(listener_)};
}

// An error here is published, so that the other ranks return it as well.
Status AddressChoice::publish_choice(const transport::NetworkSettings& network) {
  const Result<RendezvousAddress> chosen = listen(network);
  const AddressValue value = chosen.ok() ? AddressValue(*chosen) : AddressValue(chosen.error());
  for (std::size_t i = 0; chosen.ok() && i < sealed_.size(); ++i) {
    UNISONO_TRY(store_.put(sealed_key(i), format_value(sealed_[i])));
  }
  return store_.put(kAddressKey, format_value(value));
}

Result<std::vector<HostValue>> AddressChoice::read_other_ranks() const {
  std::vector<HostValue> values;
  for (int rank = 1; rank < ranks_; ++rank) {
    UNISONO_ASSIGN(const std::string text, store_.get(rank, kHostKey));
    UNISONO_ASSIGN(HostValue value, parse_host_value(text));
    values.push_back(std::move(value));
  }
  return values;
}

Result<IpAddress> AddressChoice::choose(const transport::NetworkSettings& network,
                                        const std::vector<HostValue>& others) const {
  const auto is_here = [this](const HostValue& value) { return value.host == host_.host; };
  if (std::ranges::all_of(others, is_here)) return transport::parse_ip("127.0.0.1");
  Result<IpAddress> chosen = choose_listening_address(network, locals_, host_, others);
  if (chosen.ok() || chosen.error().code != Code::argument) return chosen;
  return Error{Code::argument, fmt::format("{}. Give all ranks the same "
                                           "UNISONO_RENDEZVOUS=tcp:HOST:PORT and UNISONO_JOB_KEY",
                                           chosen.error().message)};
}

Result<RendezvousAddress> AddressChoice::listen(const transport::NetworkSettings& network) {
  UNISONO_ASSIGN(const std::vector<HostValue> others, read_other_ranks());
  UNISONO_ASSIGN(const IpAddress chosen, choose(network, others));
  UNISONO_ASSIGN(sealed_, seal(others));
  Address address{Address::Kind::tcp, transport::ip_text(chosen), 0};
  UNISONO_ASSIGN(listener_, listen_at(address));
  return RendezvousAddress{{chosen, address.port}, keys_.public_key()};
}

Result<std::vector<SealedKeysValue>> AddressChoice::seal(const std::vector<HostValue>& others) {
  UNISONO_ASSIGN(secret_, JobSecret::random());
  std::vector<SealedKeysValue> sealed;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (i % kSealedInValue == 0) sealed.emplace_back();
    const Result<SealedSecret> one = keys_.seal(secret_, others[i].key);
    if (!one.ok()) {
      return Error{one.error().code, fmt::format("rank {}: {}", i + 1, one.error().message)};
    }
    sealed.back().push_back(*one);
  }
  return sealed;
}

Result<JobSecret> AddressChoice::open_secret(const PublicKey& rank0) const {
  const std::size_t number = sealed_number(rank_);
  UNISONO_ASSIGN(const std::string text, store_.get(0, sealed_key(number / kSealedInValue)));
  UNISONO_ASSIGN(const SealedKeysValue value, parse_sealed_keys_value(text));
  const std::size_t position = number % kSealedInValue;
  if (position >= value.size()) {
    return Error{Code::state,
                 fmt::format("rank {} of {}: rank 0 has sealed no key for it", rank_, ranks_)};
  }
  Result<JobSecret> secret = keys_.open(value[position], rank0);
  if (secret.ok()) return secret;
  return Error{secret.error().code,
               fmt::format("rank {} of {}: {}", rank_, ranks_, secret.error().message)};
}

}  // namespace

Result<IpAddress> choose_listening_address(const transport::NetworkSettings& network,
                                           std::span<const transport::LocalAddress> locals,
                                           const HostValue& own,
                                           std::span<const HostValue> others) {
  const std::vector<IpAddress> peers = addresses_of_other_hosts(own, others);
  if (peers.empty()) {
    return Error{Code::argument,
                 fmt::format("rank 0's host knows no address of another host that it could reach "
                             "(UNISONO_NETWORKS=\"{}\"; addresses that rank 0's host has as well "
                             "are left out)",
                             network.networks.text())};
  }
  UNISONO_ASSIGN(
      const transport::ChosenAddress chosen,
      transport::choose_address(peers, network.networks, locals, transport::source_towards));
  base::log(base::LogLevel::info, "bootstrap", "rank 0 chose {} for the rendezvous ({})",
            transport::ip_text(chosen.local.address), chosen.why);
  return chosen.local.address;
}

Result<ChosenRendezvous> choose_rendezvous_address(KeyValueStore& store, const RankOfJob& own,
                                                   const base::Settings& settings) {
  UNISONO_ASSIGN(const transport::NetworkSettings network, transport::network_settings(settings));
  UNISONO_ASSIGN(EphemeralKeys keys, EphemeralKeys::make());
  return AddressChoice(store, own, std::move(keys)).run(network);
}

}  // namespace unisono::bootstrap
