// SPDX-License-Identifier: BSD-3-Clause
// SplitChoice: into how many pieces a vector is cut in the NIC path, each of which goes by a tree
// of its own (allreduce/split-release): computed from what packets and words cost, as measured. A
// program combines half a vector in half the time, and trees work side by side; but each tree has
// packets of its own, which have to find processors. So it pays for long vectors, where hosts have
// processors of their own, and never where what all packets cost together is what counts. Pure; the
// same at all ranks that have the same offers. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/nic/offer.hpp"
#include "engine/nic/vector_limit.hpp"

namespace unisono::engine {

// Processors of all hosts together; those of hosts that are one machine count once.
int nic_processors(std::span<const NicOffer> offers);

// Nanoseconds that an allreduce of so many words takes among hosts, as computed: 2^splits trees in
// which a parent takes `fan_in` a level.
struct NicWork {
  int hosts = 2;
  int processors = 2;
  int fan_in = 1;
  std::size_t words = 0;
  bool adds_floats = false;
};
double nic_split_ns(const NicWork& work, int splits);

class SplitChoice {
 public:
  static constexpr int kMost = 2;  // 2^2 trees for a group

  SplitChoice() = default;  // nothing is cut
  // What pays, up to `most` splits, in no more pieces than hosts. `work`: its hosts, processors and
  // fan-in.
  static SplitChoice computed(NicWork work, int most);
  // So often, whatever it costs, but no vector into more pieces than it has words.
  static SplitChoice forced(int splits);

  // Of up to kNicWordsMax.
  int splits(std::size_t words, bool adds_floats) const {
    return splits_[adds_floats ? 1 : 0][words];
  }
  int most() const { return most_; }

 private:
  using ByWords = std::array<std::uint8_t, kNicWordsMax + 1>;
  std::array<ByWords, 2> splits_ = {};
  int most_ = 0;
};

}  // namespace unisono::engine
