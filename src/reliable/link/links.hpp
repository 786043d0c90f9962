// SPDX-License-Identifier: BSD-3-Clause
// Links: the links of a rank to its peers, made when first used, and those whose timers run. One
// thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "reliable/link/link.hpp"

namespace unisono::reliable {

class Links {
 public:
  explicit Links(int ranks) : links_(static_cast<std::size_t>(ranks)) {}

  Link& of(int rank) {
    auto& link = links_[static_cast<std::size_t>(rank)];
    if (link == nullptr) link = std::make_unique<Link>();
    return *link;
  }
  // Null: the link was not used yet.
  const Link* find(int rank) const { return links_[static_cast<std::size_t>(rank)].get(); }

  // visit(link, rank) for each link in use.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t rank = 0; rank < links_.size(); ++rank) {
      if (links_[rank] != nullptr) visit(*links_[rank], static_cast<int>(rank));
    }
  }

  // A timer of that link runs.
  void watch(Link& link, int rank) {
    if (!std::exchange(link.watched, true)) watched_.push_back(rank);
  }
  // look(link, rank) for each link with a running timer; it returns whether one still runs.
  template <class Look>
  void look_at_timers(const Look& look) {
    std::erase_if(watched_, [&](int rank) {
      Link& link = of(rank);
      link.watched = look(link, rank);
      return !link.watched;
    });
  }
  std::int64_t next_deadline_ns() const {
    std::int64_t soonest = std::numeric_limits<std::int64_t>::max();
    for (const int rank : watched_) {
      const Link& link = *find(rank);
      for (const RetryTimer* timer : {&link.receiving.lack, &link.sending.ask}) {
        if (timer->runs()) soonest = std::min(soonest, timer->deadline_ns());
      }
    }
    return soonest;
  }

 private:
  std::vector<std::unique_ptr<Link>> links_;  // by rank
  std::vector<int> watched_;                  // ranks
};

}  // namespace unisono::reliable
