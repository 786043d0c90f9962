// SPDX-License-Identifier: BSD-3-Clause
#include "model/in_row/bound_ranks.hpp"

#include <cstddef>
#include <numeric>

namespace unisono::model {
namespace {

using schedule::Schedule;
using schedule::Target;

// The ranks that send to each, one for each message.
class Senders {
 public:
  explicit Senders(std::span<const Schedule> set) : first_(set.size() + 1) {
    for (const Schedule& schedule : set) {
      for (const Target& target : schedule.targets) ++first_[index_of(target) + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    ranks_.resize(first_.back());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (std::size_t rank = 0; rank < set.size(); ++rank) {
      for (const Target& target : set[rank].targets) ranks_[next[index_of(target)]++] = rank;
    }
  }

  std::span<const std::size_t> of(std::size_t rank) const {
    return std::span(ranks_).subspan(first_[rank], first_[rank + 1] - first_[rank]);
  }
  static std::size_t index_of(const Target& target) {
    return static_cast<std::size_t>(target.peer);
  }

 private:
  std::vector<std::size_t> first_;  // by receiver: in ranks_
  std::vector<std::size_t> ranks_;
};

}  // namespace

std::vector<bool> find_bound(std::span<const Schedule> set) {
  const Senders senders(set);
  std::vector<bool> bound(set.size(), true);
  std::vector<std::size_t> left(set.size()), free;
  // Ranks without senders are free, and those that have free senders only; and likewise receivers.
  const auto release = [&](const auto& count_before, const auto& for_each_after) {
    for (std::size_t rank = 0; rank < set.size(); ++rank) {
      left[rank] = count_before(rank);
      if (left[rank] == 0) free.push_back(rank);
    }
    while (!free.empty()) {
      const std::size_t rank = free.back();
      free.pop_back();
      bound[rank] = false;
      for_each_after(rank, [&](std::size_t next) {
        if (--left[next] == 0) free.push_back(next);
      });
    }
  };
  release([&](std::size_t rank) { return senders.of(rank).size(); },
          [&](std::size_t rank, const auto& reach) {
            for (const Target& target : set[rank].targets) reach(Senders::index_of(target));
          });
  release([&](std::size_t rank) { return set[rank].targets.size(); },
          [&](std::size_t rank, const auto& reach) {
            for (const std::size_t sender : senders.of(rank)) reach(sender);
          });
  return bound;
}

}  // namespace unisono::model
