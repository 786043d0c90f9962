// SPDX-License-Identifier: BSD-3-Clause
// Collectives of all kinds and sizes, split-phase, plans and communicators, once through, with
// their results. `Self` is a rank of any kind of job: rank, ranks, world. For tests only; any
// thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "harness/block_results.hpp"
#include "harness/outcome.hpp"
#include "harness/own_block_results.hpp"
#include "harness/scale.hpp"
#include "unisono/unisono.h"

namespace unisono::harness {

template <class Self>
std::vector<std::int64_t> own_values(const Self& self, std::int64_t count) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int64_t>(i) * 3 + self.rank;
  }
  return values;
}

inline std::int64_t expected_sum(int ranks, std::size_t i) {
  return static_cast<std::int64_t>(i) * 3 * ranks + std::int64_t{ranks} * (ranks - 1) / 2;
}

template <class Self>
void check_reductions(const Self& self, std::int64_t count, int root) {
  const auto input = own_values(self, count);
  std::vector<std::int64_t> everywhere(input.size());
  std::vector<std::int64_t> at_root(input.size(), -1);
  ASSERT_TRUE(succeeded(unisono_allreduce(input.data(), everywhere.data(), count, UNISONO_INT64,
                                          UNISONO_SUM, self.world)));
  ASSERT_TRUE(succeeded(unisono_reduce(input.data(), at_root.data(), count, UNISONO_INT64,
                                       UNISONO_SUM, root, self.world)));
  for (std::size_t i = 0; i < input.size(); ++i) {
    ASSERT_EQ(everywhere[i], expected_sum(self.ranks, i));
    ASSERT_EQ(at_root[i], self.rank == root ? everywhere[i] : -1);
  }
}

template <class Self>
void check_moves(const Self& self, std::int64_t count, int root) {
  auto buffer = own_values(self, count);
  const auto width = buffer.size();
  std::vector<std::int64_t> all(width * static_cast<std::size_t>(self.ranks));
  ASSERT_TRUE(
      succeeded(unisono_allgather(buffer.data(), all.data(), count, UNISONO_INT64, self.world)));
  ASSERT_TRUE(succeeded(unisono_broadcast(buffer.data(), count, UNISONO_INT64, root, self.world)));
  for (std::size_t i = 0; i < width; ++i) {
    ASSERT_EQ(buffer[i], static_cast<std::int64_t>(i) * 3 + root);
  }
  for (std::size_t at = 0; at < all.size(); ++at) {
    ASSERT_EQ(all[at], static_cast<std::int64_t>(at % width * 3 + at / width));
  }
}

template <class Self>
void check_started_and_planned(const Self& self) {
  const auto input = own_values(self, 500);
  std::vector<std::int64_t> sum(input.size());
  std::vector<std::int64_t> planned(input.size());
  unisono_plan_t plan = nullptr;
  ASSERT_TRUE(succeeded(unisono_allreduce_plan(input.data(), planned.data(), 500, UNISONO_INT64,
                                               UNISONO_SUM, self.world, &plan)));
  for (int round = 0; round < 20; ++round) {
    std::fill(planned.begin(), planned.end(), 0);
    unisono_request_t requests[2] = {};
    ASSERT_TRUE(succeeded(unisono_allreduce_start(input.data(), sum.data(), 500, UNISONO_INT64,
                                                  UNISONO_SUM, self.world, &requests[0])));
    ASSERT_TRUE(succeeded(unisono_plan_start(plan)));
    ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &requests[1])));
    ASSERT_TRUE(succeeded(unisono_wait_all(requests, 2)));
    ASSERT_TRUE(succeeded(unisono_plan_wait(plan)));
    ASSERT_EQ(sum, planned);
    ASSERT_EQ(sum[499], expected_sum(self.ranks, 499));
  }
  ASSERT_TRUE(succeeded(unisono_plan_free(plan)));
}

template <class Self>
void check_parts(const Self& self) {
  unisono_comm_t part = nullptr;
  ASSERT_TRUE(succeeded(unisono_comm_split(self.world, self.rank % 2, -self.rank, &part)));
  int size = 0;
  ASSERT_TRUE(succeeded(unisono_comm_size(part, &size)));
  std::vector<int> members(static_cast<std::size_t>(size));
  ASSERT_TRUE(succeeded(unisono_allgather(&self.rank, members.data(), 1, UNISONO_INT32, part)));
  int expected = (self.ranks - 1) % 2 == self.rank % 2 ? self.ranks - 1 : self.ranks - 2;
  for (const int member : members) {
    ASSERT_EQ(member, expected);
    expected -= 2;
  }
  ASSERT_TRUE(succeeded(unisono_comm_free(part)));
}

template <class Self>
void check_blocks(const Self& self) {
  int turn = 0;
  for (const std::int64_t count : {0, 1, 8, 1000, static_cast<int>(scaled(40009))}) {
    SCOPED_TRACE(count);
    for (const Way way : kWays) {
      const bool in_place = ++turn % 2 == 0;
      const Words counts = unequal_counts(self.ranks, count);
      ASSERT_NO_FATAL_FAILURE(check_equal_blocks(self, count, turn % self.ranks, in_place, way));
      ASSERT_NO_FATAL_FAILURE(check_unequal_blocks(self, counts, in_place, way));
      ASSERT_NO_FATAL_FAILURE(check_equal_blocks(self, count, turn % self.ranks, !in_place, way));
      ASSERT_NO_FATAL_FAILURE(check_own_blocks(self, count, turn % self.ranks, in_place, way));
    }
  }
}

template <class Self>
void check_everything(const Self& self) {
  for (const std::int64_t count :
       {0, 1, 7, 8, 64, 1000, 8192, 100003, static_cast<int>(scaled(300007))}) {
    SCOPED_TRACE(count);
    for (const int root : {0, self.ranks - 1}) {
      ASSERT_NO_FATAL_FAILURE(check_reductions(self, count, root));
    }
    ASSERT_NO_FATAL_FAILURE(check_moves(self, count, self.ranks / 2));
  }
  ASSERT_NO_FATAL_FAILURE(check_started_and_planned(self));
  ASSERT_NO_FATAL_FAILURE(check_parts(self));
  ASSERT_NO_FATAL_FAILURE(check_blocks(self));
}

}  // namespace unisono::harness
