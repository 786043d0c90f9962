// SPDX-License-Identifier: BSD-3-Clause
#include "engine/nic/offer.hpp"

#include <fmt/format.h>

#include <map>

#include "nic/loader/interface.hpp"

namespace unisono::engine {
namespace {

base::Error refusal(const std::string& why) {
  return {base::Code::unsupported, "the NIC path is not used: " + why};
}

}  // namespace

NicWishes NicWishes::of(const base::Settings& settings) {
  using base::Setting;
  return {.splits = static_cast<std::int32_t>(settings.integer(Setting::nic_splits)),
          .rooted = settings.toggle(Setting::nic_rooted)};
}

base::Status agree(std::span<const NicOffer> offers, std::span<const int> ranks) {
  const auto rank_of = [&](std::size_t host) {
    return ranks.empty() ? static_cast<int>(host) : ranks[host];
  };
  std::map<std::uint32_t, int> rank_at;  // by address
  for (std::size_t host = 0; host < offers.size(); ++host) {
    const NicOffer& offer = offers[host];
    const int rank = rank_of(host);
    if (offer.available == 0) {
      return refusal(fmt::format(
          "rank {} has none; `unisono nic status` on its host says what is missing", rank));
    }
    const std::uint32_t first = offers[0].address.ipv4;
    if (offer.mask != offers[0].mask || ((offer.address.ipv4 ^ first) & offer.mask) != 0) {
      return refusal(fmt::format("rank 0 is at {} and rank {} at {}, which is another network",
                                 nic::ipv4_text(first), rank, nic::ipv4_text(offer.address.ipv4)));
    }
    const NicWishes& wishes = offer.wishes;
    const bool splits_differ = wishes.splits != offers[0].wishes.splits;
    if (splits_differ || wishes.rooted != offers[0].wishes.rooted) {
      return refusal(fmt::format("ranks {} and {} have different values of UNISONO_NIC_{}",
                                 rank_of(0), rank, splits_differ ? "SPLITS" : "ROOTED"));
    }
    const auto [other, is_new] = rank_at.emplace(offer.address.ipv4, rank);
    if (!is_new) {
      return refusal(fmt::format("ranks {} and {} share the interface of {}", other->second, rank,
                                 nic::ipv4_text(offer.address.ipv4)));
    }
  }
  return base::success();
}

}  // namespace unisono::engine
