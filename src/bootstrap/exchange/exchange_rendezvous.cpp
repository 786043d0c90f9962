// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/exchange/exchange_rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/kvs/key_exchange.hpp"
#include "bootstrap/kvs/rendezvous_values.hpp"
#include "bootstrap/socket.hpp"
#include "transport/ip/network_settings.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

// One rank's part.
class Choice {
 public:
  Choice(ExchangeRounds& rounds, EphemeralKeys keys, transport::NetworkSettings network)
      : rounds_(rounds), keys_(std::move(keys)), network_(std::move(network)) {}

  Result<std::string> describe_host();
  Result<ChosenRendezvous> run(const std::vector<std::string>& hosts, const std::string& user_key);

 private:
  Status read_hosts(const std::vector<std::string>& texts);
  bool on_one_host() const;
  Result<std::string> listen();
  Result<std::string> spread_key();
  Result<std::string> seal_for_children(int holders, const JobSecret& secret) const;
  Result<JobSecret> open_from_parent(int holders, const std::vector<std::string>& texts) const;

  ExchangeRounds& rounds_;
  EphemeralKeys keys_;
  transport::NetworkSettings network_;
  std::vector<transport::LocalAddress> locals_;
  std::vector<HostValue> hosts_;  // by rank
  base::Descriptor listener_;     // of rank 0
};

Result<std::string> Choice::describe_host() {
  HostValue own;
  UNISONO_ASSIGN(locals_, transport::local_addresses());
  UNISONO_ASSIGN(own.host, own_host_id());
  own.key = keys_.public_key();
  own.addresses = reachable_addresses(locals_, network_.networks);
  return format_value(own);
}

Status Choice::read_hosts(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    UNISONO_ASSIGN(HostValue value, parse_host_value(text));
    hosts_.push_back(std::move(value));
  }
  return base::success();
}

bool Choice::on_one_host() const {
  return std::ranges::all_of(hosts_,
                             [this](const HostValue& each) { return each.host == hosts_[0].host; });
}

// By rank 0: the address at which it listens from now on.
Result<std::string> Choice::listen() {
  Address address;
  if (on_one_host()) {
    UNISONO_ASSIGN(address, random_unix_address());
  } else {
    const std::vector<HostValue> others(hosts_.begin() + 1, hosts_.end());
    UNISONO_ASSIGN(const transport::IpAddress chosen,
                   choose_listening_address(network_, locals_, hosts_[0], others));
    address = {Address::Kind::tcp, transport::ip_text(chosen), 0};
  }
  UNISONO_ASSIGN(listener_, listen_at(address));
  return address_text(address);
}

// In each round every rank that has the key seals it for kSealedInValue further ranks: with ranks
// 0 .. h-1 as holders, rank r seals for the ranks from h + r * kSealedInValue on.
constexpr int kChildren = static_cast<int>(kSealedInValue);

Result<std::string> Choice::seal_for_children(int holders, const JobSecret& secret) const {
  SealedKeysValue sealed;
  const int first = holders + rounds_.rank() * kChildren;
  for (int child = first; child < std::min(first + kChildren, rounds_.ranks()); ++child) {
    UNISONO_ASSIGN(const SealedSecret one,
                   keys_.seal(secret, hosts_[static_cast<std::size_t>(child)].key));
    sealed.push_back(one);
  }
  return sealed.empty() ? std::string() : format_value(sealed);
}

Result<JobSecret> Choice::open_from_parent(int holders,
                                           const std::vector<std::string>& texts) const {
  const int index = rounds_.rank() - holders;
  const auto parent = static_cast<std::size_t>(index / kChildren);
  const auto position = static_cast<std::size_t>(index % kChildren);
  UNISONO_ASSIGN(const SealedKeysValue value, parse_sealed_keys_value(texts[parent]));
  if (position >= value.size()) {
    return Error{Code::state,
                 fmt::format("rank {} has sealed no key for rank {}", parent, rounds_.rank())};
  }
  return keys_.open(value[position], hosts_[parent].key);
}

Result<std::string> Choice::spread_key() {
  const int rank = rounds_.rank();
  Result<JobSecret> secret = rank == 0 ? JobSecret::random() : Result<JobSecret>(JobSecret());
  for (int holders = 1; holders < rounds_.ranks(); holders *= 1 + kChildren) {
    Result<std::string> own(std::string{});
    if (!secret.ok()) {
      own = secret.error();
    } else if (rank < holders) {
      own = seal_for_children(holders, *secret);
    }
    UNISONO_ASSIGN(const std::vector<std::string> texts, rounds_.gather(own));
    const bool receives = rank >= holders && rank < holders * (1 + kChildren);
    if (receives) secret = open_from_parent(holders, texts);
  }
  if (!secret.ok()) return secret.error();
  return secret->key_text();
}

Result<ChosenRendezvous> Choice::run(const std::vector<std::string>& hosts,
                                     const std::string& user_key) {
  UNISONO_TRY(read_hosts(hosts));
  if (rounds_.ranks() == 1) return ChosenRendezvous{};  // a job of one rank needs no address
  const Result<std::string> own = rounds_.rank() == 0 ? listen() : Result<std::string>("");
  UNISONO_ASSIGN(const std::vector<std::string> addresses, rounds_.gather(own));
  ChosenRendezvous chosen;
  UNISONO_ASSIGN(chosen.address, parse_address(addresses[0]));
  // At a Unix socket the kernel reports the user, so ranks on one host need no key.
  if (!on_one_host()) {
    UNISONO_ASSIGN(chosen.key, spread_key());
  }
  if (!user_key.empty()) chosen.key = user_key;
  chosen.listener = std::move(listener_);
  return chosen;
}

Result<Choice> make_choice(ExchangeRounds& rounds, const Result<base::Settings>& settings) {
  if (!settings.ok()) return settings.error();
  UNISONO_ASSIGN(transport::NetworkSettings network, transport::network_settings(*settings));
  UNISONO_ASSIGN(EphemeralKeys keys, EphemeralKeys::make());
  return Choice(rounds, std::move(keys), std::move(network));
}

}  // namespace

Result<ChosenRendezvous> choose_rendezvous_by_exchange(ExchangeRounds& rounds,
                                                       const Result<base::Settings>& settings) {
  Result<Choice> choice = make_choice(rounds, settings);
  const Result<std::string> host =
      choice.ok() ? choice->describe_host() : Result<std::string>(choice.error());
  UNISONO_ASSIGN(const std::vector<std::string> hosts, rounds.gather(host));
  return choice->run(hosts, settings->text(base::Setting::job_key));
}

}  // namespace unisono::bootstrap
