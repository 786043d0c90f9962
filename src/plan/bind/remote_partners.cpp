// SPDX-License-Identifier: BSD-3-Clause
#include "plan/bind/remote_partners.hpp"

#include <algorithm>

namespace unisono::plan {
namespace {

using Ranks = std::vector<std::int32_t>;

void make_set(Ranks& ranks) {
  std::ranges::sort(ranks);
  const auto repeated = std::ranges::unique(ranks);
  ranks.erase(repeated.begin(), repeated.end());
  ranks.shrink_to_fit();
}

}  // namespace

void note_remote_partners(Program& program, std::span<const schedule::Schedule> set, int rank,
                          const topology::HostMap& hosts) {
  Ranks receivers, senders;
  std::vector<bool> is_written(static_cast<std::size_t>(hosts.hosts()), false);
  for (const schedule::Target& target : set[static_cast<std::size_t>(rank)].targets) {
    is_written[static_cast<std::size_t>(hosts.of(target.peer))] = true;
  }
  for (int host = 0; host < hosts.hosts(); ++host) {
    if (host == hosts.of(rank) || !is_written[static_cast<std::size_t>(host)]) continue;
    const auto there = hosts.members(host);
    receivers.insert(receivers.end(), there.begin(), there.end());
  }
  for (const std::int32_t mate : hosts.members(hosts.of(rank))) {
    for (const schedule::Slot& slot : set[static_cast<std::size_t>(mate)].slots) {
      if (!hosts.share(rank, slot.source)) senders.push_back(slot.source);
    }
  }
  make_set(receivers);
  make_set(senders);
  program.remote_receivers = std::move(receivers);
  program.remote_senders = std::move(senders);
}

void note_all_remote(Program& program, int rank, const topology::HostMap& hosts) {
  Ranks others;
  for (std::int32_t r = 0; r < hosts.ranks(); ++r) {
    if (!hosts.share(rank, r)) others.push_back(r);
  }
  program.remote_receivers = program.remote_senders = std::move(others);
}

}  // namespace unisono::plan
