// SPDX-License-Identifier: BSD-3-Clause
// Random sets of schedules that end, for tests of simulations: messages, reductions and copies in
// an order that some run of all ranks follows, so nothing can deadlock. They compute nothing
// useful.
#pragma once

#include <cstdint>
#include <vector>

#include "base/prng.hpp"
#include "schedule/builder.hpp"

namespace unisono::sim {

inline std::vector<schedule::Schedule> random_set(int ranks, int events, std::uint64_t seed) {
  base::Prng random(seed);
  constexpr std::int64_t kElements = 64;
  const schedule::Shape shape{schedule::Collective::allreduce, ranks, 0, kElements};
  const auto below = [&](int bound) {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(bound)));
  };
  std::vector<schedule::Builder> builders;
  std::vector<std::vector<schedule::SlotId>> pending(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) builders.emplace_back(shape, rank);
  const auto builder = [&](int rank) -> schedule::Builder& {
    return builders[static_cast<std::size_t>(rank)];
  };
  const auto other_than = [&](int rank) { return (rank + 1 + below(ranks - 1)) % ranks; };
  const auto receive = [&](int rank) {
    auto& slots = pending[static_cast<std::size_t>(rank)];
    if (slots.empty()) return;
    const auto chosen = static_cast<std::size_t>(below(static_cast<int>(slots.size())));
    builder(rank).wait(slots[chosen]);
    slots.erase(slots.begin() + static_cast<std::ptrdiff_t>(chosen));
  };
  for (int i = 0; i < events; ++i) {
    const int rank = below(ranks);
    const std::int64_t count = below(3) == 0 ? 0 : 1 + below(kElements - 1);
    switch (below(5)) {
      case 0: {
        std::vector<schedule::Target> targets;
        for (int k = 0; k < 3; ++k) {
          const int peer = other_than(rank);
          const schedule::SlotId slot = builder(peer).slot(rank, count);
          pending[static_cast<std::size_t>(peer)].push_back(slot);
          targets.push_back({peer, slot});
        }
        builder(rank).multicast(targets, schedule::input(0, count));
        break;
      }
      case 1:
        builder(rank).reduce(schedule::output(0, count), schedule::input(0, count),
                             schedule::input(0, count));
        builder(rank).copy(schedule::output(0, count), schedule::input(0, count));
        break;
      case 2:
        receive(rank);
        break;
      default: {
        const int peer = other_than(rank);
        const schedule::SlotId slot = builder(peer).slot(rank, count);
        pending[static_cast<std::size_t>(peer)].push_back(slot);
        builder(rank).send(peer, slot, schedule::output(0, count));
      }
    }
  }
  std::vector<schedule::Schedule> set;
  for (int rank = 0; rank < ranks; ++rank) {
    while (!pending[static_cast<std::size_t>(rank)].empty()) receive(rank);
    set.push_back(std::move(builder(rank)).take());
  }
  return set;
}

}  // namespace unisono::sim
