// SPDX-License-Identifier: BSD-3-Clause
// How a job learns which of its hosts have a NIC path: the first rank of each sends the abilities
// of its host to the others. So communicators need not ask if one of their hosts has none.
#include <algorithm>

#include "base/clock.hpp"
#include "job/job.hpp"

namespace unisono::job {

base::Status Job::tell_nic_offers(const std::optional<nic::Capabilities>& offer) {
  if (network_ == nullptr || !offer) return base::success();
  const bool is_first = rank_ == hosts_.first_here();
  if (is_first) {
    RankHeader& own = rank_headers_[rank_];
    own.nic_offer = *offer;
    const auto said =
        static_cast<std::uint64_t>(own.nic_offer.available != 0 ? Verdict::yes : Verdict::no);
    own.has_nic.store(said, std::memory_order_release);
    for (const int first : hosts_.firsts()) {
      if (first == rank_) continue;
      network_->put({.target = first,
                     .source = reinterpret_cast<const std::byte*>(&own.nic_offer),
                     .place = reinterpret_cast<std::byte*>(&own.nic_offer),
                     .bytes = sizeof own.nic_offer,
                     .flag = reinterpret_cast<std::uint64_t*>(&own.has_nic),
                     .flag_value = said});
    }
  }
  const auto has_said = [&](int first) {
    return static_cast<Verdict>(rank_headers_[first].has_nic.load(std::memory_order_acquire)) !=
           Verdict::unknown;
  };
  const auto heard_all = [&] {
    const auto late = std::ranges::find_if_not(hosts_.firsts(), has_said);
    if (late == hosts_.firsts().end()) return true;
    if (is_first) network_->awaits(*late);
    return false;
  };
  UNISONO_TRY(await(heard_all, [] { return "not every host has said whether it has a NIC path"; }));
  for (const int first : hosts_.firsts()) nic_offers_.push_back(rank_headers_[first].nic_offer);
  return base::success();
}

}  // namespace unisono::job
