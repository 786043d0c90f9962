// SPDX-License-Identifier: BSD-3-Clause
// A random moment from which on the paths between some hosts carry less than full datagrams of 1472
// bytes, one way or both, and nobody reports it: an MTU of 1499, 1300 or 576. It is the start in
// half of the worlds that have one. In one thread.
#pragma once

#include <optional>

#include "base/prng.hpp"
#include "harness/world.hpp"

namespace unisono::test {

class NarrowPaths {
 public:
  explicit NarrowPaths(base::Prng& prng) : prng_(prng) {
    const std::uint64_t most_steps[] = {1, 1, 200, 2'000};
    if (prng.below(3) == 0) in_ = prng.below(most_steps[prng.below(4)]);
  }

  // Before each step. In a world without datagrams nothing happens.
  void step(World& world) {
    if (!in_ || (*in_)-- != 0) return;
    in_.reset();
    if (world.datagrams() == nullptr) return;
    const std::uint64_t paths = 1 + prng_.below(4);
    for (std::uint64_t p = 0; p < paths; ++p) narrow_one(world);
  }
  bool have_come() const { return have_come_; }

 private:
  void narrow_one(World& world) {
    const std::size_t sizes[] = {1471, 1272, 1272, 548};
    const std::size_t most_bytes = sizes[prng_.below(4)];
    const bool one_way = prng_.below(2) == 0;
    const auto n = static_cast<std::uint64_t>(world.ranks());
    const auto from = static_cast<int>(prng_.below(n));
    const auto to = static_cast<int>(prng_.below(n));
    if (world.are_on_one_host(from, to)) return;
    have_come_ = true;
    for (int left = 0; left < world.ranks(); ++left) {
      for (int right = 0; right < world.ranks(); ++right) {
        if (!world.are_on_one_host(left, from) || !world.are_on_one_host(right, to)) continue;
        world.datagrams()->narrow_one_way(left, right, most_bytes);
        if (!one_way) world.datagrams()->narrow_one_way(right, left, most_bytes);
      }
    }
  }

  base::Prng& prng_;
  std::optional<std::uint64_t> in_;
  bool have_come_ = false;
};

}  // namespace unisono::test
