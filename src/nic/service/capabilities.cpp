// SPDX-License-Identifier: BSD-3-Clause
#include "nic/service/capabilities.hpp"

#include <fmt/format.h>

#include <map>

#include "nic/loader/interface.hpp"

namespace unisono::nic {
namespace {

base::Error refusal(const std::string& why) {
  return {base::Code::unsupported, "the NIC path is not used: " + why};
}

}  // namespace

Preferences Preferences::of(const base::Settings& settings) {
  using base::Setting;
  return {.splits = static_cast<std::int32_t>(settings.integer(Setting::nic_splits)),
          .rooted = settings.toggle(Setting::nic_rooted)};
}

base::Status check_capabilities(std::span<const Capabilities> hosts, std::span<const int> ranks) {
  const auto rank_of = [&](std::size_t host) {
    return ranks.empty() ? static_cast<int>(host) : ranks[host];
  };
  std::map<std::uint32_t, int> rank_at;  // by address
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const Capabilities& own = hosts[host];
    const int rank = rank_of(host);
    if (own.available == 0) {
      return refusal(fmt::format(
          "rank {} has none; `unisono nic status` on its host says what is missing", rank));
    }
    const std::uint32_t first = hosts[0].address.ipv4;
    if (own.mask != hosts[0].mask || ((own.address.ipv4 ^ first) & own.mask) != 0) {
      return refusal(fmt::format("rank 0 is at {} and rank {} at {}, which is another network",
                                 ipv4_text(first), rank, ipv4_text(own.address.ipv4)));
    }
    const Preferences& preferences = own.preferences;
    const bool splits_differ = preferences.splits != hosts[0].preferences.splits;
    if (splits_differ || preferences.rooted != hosts[0].preferences.rooted) {
      return refusal(fmt::format("ranks {} and {} have different values of UNISONO_NIC_{}",
                                 rank_of(0), rank, splits_differ ? "SPLITS" : "ROOTED"));
    }
    const auto [other, is_new] = rank_at.emplace(own.address.ipv4, rank);
    if (!is_new) {
      return refusal(fmt::format("ranks {} and {} share the interface of {}", other->second, rank,
                                 ipv4_text(own.address.ipv4)));
    }
  }
  return base::success();
}

}  // namespace unisono::nic
