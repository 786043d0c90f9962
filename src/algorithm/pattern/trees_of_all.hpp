// SPDX-License-Identifier: BSD-3-Clause
// A binomial tree for each rank's block, all of them the same but shifted (Jeaugey 2025): a block
// hops the largest power of two first, from each rank that has it. So the ranks that have it before
// a hop are at distances that are multiples of twice the hop. Pure; any thread.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace unisono::algorithm::pattern {

// The largest power of two below `ranks`; 0 for one rank.
inline int longest_hop(int ranks) {
  return ranks == 1 ? 0 : static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks - 1)));
}

// The distances that blocks have come which a rank sends on by this hop, rising and in messages of
// at most `blocks` of them. They are the same for all ranks.
inline std::vector<std::vector<int>> messages_of_hop(int ranks, int hop, int blocks) {
  std::vector<std::vector<int>> messages;
  for (std::int64_t distance = 0; distance + hop < ranks; distance += 2 * std::int64_t{hop}) {
    if (messages.empty() || static_cast<int>(messages.back().size()) == blocks) {
      messages.emplace_back();
    }
    messages.back().push_back(static_cast<int>(distance));
  }
  return messages;
}

}  // namespace unisono::algorithm::pattern
