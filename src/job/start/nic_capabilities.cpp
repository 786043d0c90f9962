// SPDX-License-Identifier: BSD-3-Clause
// How a job learns which of its hosts have a NIC path: the first rank of each advertises the
// abilities of its host to the others. So communicators need not ask if one of their hosts has
// none.
#include <algorithm>

#include "job/start/exchanges.hpp"

namespace unisono::job {
namespace {

void advertise(const StartUp& start, const nic::Capabilities& capabilities) {
  const Ranks& ranks = start.ranks();
  RankHeader& own = ranks.entry(ranks.own());
  own.nic_capabilities = capabilities;
  const auto vote = static_cast<std::uint64_t>(capabilities.available != 0 ? Vote::yes : Vote::no);
  own.has_nic.store(vote, std::memory_order_release);
  for (const int first : ranks.hosts().firsts()) {
    if (first == ranks.own()) continue;
    start.network()->put({.target = first,
                          .source = reinterpret_cast<const std::byte*>(&own.nic_capabilities),
                          .place = reinterpret_cast<std::byte*>(&own.nic_capabilities),
                          .bytes = sizeof own.nic_capabilities,
                          .flag = reinterpret_cast<std::uint64_t*>(&own.has_nic),
                          .flag_value = vote});
  }
}

}  // namespace

base::Result<std::vector<nic::Capabilities>> exchange_nic_capabilities(
    StartUp& start, const std::optional<nic::Capabilities>& own) {
  std::vector<nic::Capabilities> by_host;
  if (start.network() == nullptr || !own) return by_host;
  const Ranks& ranks = start.ranks();
  const auto firsts = ranks.hosts().firsts();
  if (ranks.is_first_here()) advertise(start, *own);
  const auto has_advertised = [&ranks](int first) {
    return static_cast<Vote>(ranks.entry(first).has_nic.load(std::memory_order_acquire)) !=
           Vote::unknown;
  };
  const auto all_have = [&] {
    const auto late = std::ranges::find_if_not(firsts, has_advertised);
    if (late == firsts.end()) return true;
    if (ranks.is_first_here()) start.network()->awaits(*late);
    return false;
  };
  UNISONO_TRY(start.await(all_have, [&] {
    return "the hosts of these have not said whether they have a NIC path: " +
           ranks.names_of_late(firsts, has_advertised);
  }));
  for (const int first : firsts) by_host.push_back(ranks.entry(first).nic_capabilities);
  return by_host;
}

}  // namespace unisono::job
