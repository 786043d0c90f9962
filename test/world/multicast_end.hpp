// SPDX-License-Identifier: BSD-3-Clause
// The network of a world ceases to carry multicast, as behind a switch with IGMP snooping and no
// querier: from a moment on that a seed decides, or never.
#pragma once

#include <cstdint>
#include <optional>

#include "base/prng.hpp"
#include "harness/world.hpp"

namespace unisono::test {

// Between all ranks, from one, to one, or between some, in one direction. In a world without
// datagrams nothing happens.
class MulticastEnd {
 public:
  explicit MulticastEnd(base::Prng& prng) : prng_(prng) {
    const std::uint64_t most_steps[] = {20, 200, 2'000};
    if (prng.below(2) == 0) in_ = prng.below(most_steps[prng.below(3)]);
  }

  // Before each step.
  void step(World& world) {
    if (!in_ || (*in_)-- != 0) return;
    in_.reset();
    if (world.datagrams() == nullptr) return;
    const std::uint64_t kind = prng_.below(4);
    const int one = static_cast<int>(prng_.below(static_cast<std::uint64_t>(world.ranks())));
    for (int other = 0; other < world.ranks(); ++other) {
      if (kind == 1) world.datagrams()->stop_multicast(one, other);
      if (kind == 2) world.datagrams()->stop_multicast(other, one);
      if (kind == 3 && prng_.below(2) == 0) world.datagrams()->stop_multicast(one, other);
    }
    if (kind == 0) world.datagrams()->stop_multicast();
    has_come_ = true;
  }
  bool has_come() const { return has_come_; }

 private:
  base::Prng& prng_;
  std::optional<std::uint64_t> in_;
  bool has_come_ = false;
};

}  // namespace unisono::test
