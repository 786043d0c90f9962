// SPDX-License-Identifier: BSD-3-Clause
// Allgathers of random blocks, for jobs with a NIC path.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/prng.hpp"
#include "nic/job/nic_job.hpp"

namespace unisono::harness {

inline std::vector<std::uint8_t> block_of(int rank, int call, std::size_t bytes) {
  base::Prng random(static_cast<std::uint64_t>(call * 100 + rank));
  std::vector<std::uint8_t> block(bytes);
  for (auto& byte : block) byte = static_cast<std::uint8_t>(random.next());
  return block;
}

// Every other one in place.
inline void check_allgather(const NicRank& self, int call, std::size_t bytes) {
  std::vector<std::uint8_t> expected;
  for (int rank = 0; rank < self.ranks; ++rank) {
    const auto block = block_of(rank, call, bytes);
    expected.insert(expected.end(), block.begin(), block.end());
  }
  const auto own = block_of(self.rank, call, bytes);
  const auto count = static_cast<std::int64_t>(bytes);
  std::vector<std::uint8_t> all(expected.size(), 42);
  const bool in_place = call % 2 != 0;
  if (in_place) std::ranges::copy(own, all.begin() + self.rank * count);
  ASSERT_TRUE(succeeded(unisono_allgather(in_place ? UNISONO_IN_PLACE : own.data(), all.data(),
                                          count, UNISONO_UINT8, self.world)));
  ASSERT_EQ(all, expected) << "call " << call;
}

}  // namespace unisono::harness
