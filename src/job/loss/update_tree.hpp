// SPDX-License-Identifier: BSD-3-Clause
// The tree along which updates on losses and failures go between hosts. The first rank of a host
// that learns of one informs the neighbours, which do the same. So P hosts need about 2 P messages,
// wherever and however often it begins. A host without living ranks passes nothing on. The first
// living one below it takes its place, so it remains a tree whatever dies. Pure.
#pragma once

#include <algorithm>
#include <vector>

namespace unisono::job {

// Children of a host. Few, so that no host has much to send. Many, so that updates arrive after a
// few hops (1024 hosts: at most 8, from a leaf to a leaf).
inline constexpr int kUpdateArity = 8;

// Calls visit(child) until it returns true; returns whether it did.
template <class Visit>
bool any_update_child(int host, int hosts, const Visit& visit) {
  const int end = std::min(kUpdateArity * (host + 1) + 1, hosts);
  for (int child = kUpdateArity * host + 1; child < end; ++child) {
    if (visit(child)) return true;
  }
  return false;
}

// The host that takes the place of `host`; -1: neither it nor a host below it lives.
template <class Lives>
int update_stand_in(int host, int hosts, const Lives& lives) {
  if (lives(host)) return host;
  int found = -1;
  any_update_child(host, hosts, [&](int child) {
    found = update_stand_in(child, hosts, lives);
    return found >= 0;
  });
  return found;
}

// The hosts that `host` tells, of `hosts`: each lives, as far as it knows.
template <class Lives>
std::vector<int> update_neighbours(int host, int hosts, const Lives& lives) {
  const auto is_there = [&](int other) { return other == host || lives(other); };
  std::vector<int> found;
  const auto add_below = [&](int place) {
    any_update_child(place, hosts, [&](int child) {
      const int next = update_stand_in(child, hosts, is_there);
      if (next >= 0 && next != host) found.push_back(next);
      return false;
    });
  };
  add_below(host);
  // Up to the first place that it does not take.
  for (int place = host; place > 0;) {
    place = (place - 1) / kUpdateArity;
    const int above = update_stand_in(place, hosts, is_there);
    if (above != host) {
      found.push_back(above);
      break;
    }
    add_below(place);
  }
  return found;
}

}  // namespace unisono::job
