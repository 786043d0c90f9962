// SPDX-License-Identifier: BSD-3-Clause
// The tree along which news of losses and failures go between hosts: who hears them first on its
// host tells the neighbours, which do the same, so P hosts need about 2 P messages whoever begins,
// and however many begin at the same time. A host on which nobody lives passes nothing on; the
// first one below it that lives takes its place, so whatever dies it is a tree. Pure.
#pragma once

#include <algorithm>
#include <vector>

namespace unisono::job {

// Children of a host: few enough that nobody has much to send, many enough that news arrive after
// a few hops (1024 hosts: at most 8, from a leaf to a leaf).
inline constexpr int kNewsArity = 8;

// Calls visit(child) until it gives true; whether it did.
template <class Visit>
bool any_news_child(int host, int hosts, const Visit& visit) {
  const int end = std::min(kNewsArity * (host + 1) + 1, hosts);
  for (int child = kNewsArity * host + 1; child < end; ++child) {
    if (visit(child)) return true;
  }
  return false;
}

// Who stands in the place of `host`; -1: nobody there or below it lives.
template <class Lives>
int news_stand_in(int host, int hosts, const Lives& lives) {
  if (lives(host)) return host;
  int found = -1;
  any_news_child(host, hosts, [&](int child) {
    found = news_stand_in(child, hosts, lives);
    return found >= 0;
  });
  return found;
}

// The hosts that `host` tells, of `hosts`: each lives, as far as it knows.
template <class Lives>
std::vector<int> news_neighbours(int host, int hosts, const Lives& lives) {
  const auto is_there = [&](int other) { return other == host || lives(other); };
  std::vector<int> found;
  const auto add_below = [&](int place) {
    any_news_child(place, hosts, [&](int child) {
      const int next = news_stand_in(child, hosts, is_there);
      if (next >= 0 && next != host) found.push_back(next);
      return false;
    });
  };
  add_below(host);
  // Up to the first place in which it does not stand.
  for (int place = host; place > 0;) {
    place = (place - 1) / kNewsArity;
    const int above = news_stand_in(place, hosts, is_there);
    if (above != host) {
      found.push_back(above);
      break;
    }
    add_below(place);
  }
  return found;
}

}  // namespace unisono::job
