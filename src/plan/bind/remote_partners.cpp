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

// The ranks of the other hosts to which a schedule sends.
Ranks receivers_of(const schedule::Schedule& own, const topology::HostMap& hosts) {
  Ranks receivers;
  std::vector<bool> is_written(static_cast<std::size_t>(hosts.hosts()), false);
  for (const schedule::Target& target : own.targets) {
    is_written[static_cast<std::size_t>(hosts.of(target.peer))] = true;
  }
  for (int host = 0; host < hosts.hosts(); ++host) {
    if (host == hosts.of(own.rank) || !is_written[static_cast<std::size_t>(host)]) continue;
    const auto there = hosts.members(host);
    receivers.insert(receivers.end(), there.begin(), there.end());
  }
  make_set(receivers);
  return receivers;
}

Ranks ranks_elsewhere(int rank, const topology::HostMap& hosts) {
  Ranks others;
  for (std::int32_t r = 0; r < hosts.ranks(); ++r) {
    if (!hosts.share(rank, r)) others.push_back(r);
  }
  return others;
}

}  // namespace

void note_receivers_here(Program& program, const schedule::Schedule& own,
                         const topology::HostMap& hosts) {
  for (const schedule::Target& target : own.targets) {
    if (hosts.share(own.rank, target.peer)) program.receivers_here.push_back(target.peer);
  }
  make_set(program.receivers_here);
}

void note_remote_partners(Program& program, std::span<const schedule::Schedule> set, int rank,
                          const topology::HostMap& hosts) {
  Ranks senders;
  for (const std::int32_t mate : hosts.members(hosts.of(rank))) {
    for (const schedule::Slot& slot : set[static_cast<std::size_t>(mate)].slots) {
      if (!hosts.share(rank, slot.source)) senders.push_back(slot.source);
    }
  }
  make_set(senders);
  program.remote_receivers = receivers_of(set[static_cast<std::size_t>(rank)], hosts);
  program.remote_senders = std::move(senders);
}

// The receiver of an advertised block writes to its sender too. That sender waits for it in the
// same operation, so its buffer is free.
void note_partners_of_local(Program& program, const schedule::Schedule& own,
                            const topology::HostMap& hosts) {
  program.remote_receivers = receivers_of(own, hosts);
  const auto of = own.shape.collective;
  const bool is_with_root = hosts.share(own.rank, own.shape.root);
  if (of == schedule::Collective::scatter && !is_with_root) {
    program.remote_senders = {own.shape.root};
  } else if (schedule::has_pairs(of) || (of == schedule::Collective::gather && is_with_root)) {
    program.remote_senders = ranks_elsewhere(own.rank, hosts);
  }
}

void note_all_remote(Program& program, int rank, const topology::HostMap& hosts) {
  program.remote_receivers = program.remote_senders = ranks_elsewhere(rank, hosts);
}

}  // namespace unisono::plan
