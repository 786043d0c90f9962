// SPDX-License-Identifier: BSD-3-Clause
// Memory that the ranks of a host share: reductions give the same results from it and from any
// other, whichever rank passes which, and its errors harm nobody. Also of memory/caller_memory.cpp.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::memory_test {
namespace {

enum class Reduces : std::uint8_t { in_place, apart, by_blocks, started };

// Two buffers of a rank, in shared memory or in its own.
class TwoBuffers {
 public:
  TwoBuffers(unisono_comm_t comm, std::size_t count, bool is_shared)
      : own_(is_shared ? 0 : 2 * count) {
    if (is_shared) {
      EXPECT_TRUE(succeeded(unisono_memory_alloc(comm, 2 * count * sizeof(std::int64_t), &block_)));
    }
    input = is_shared ? static_cast<std::int64_t*>(block_) : own_.data();
    output = input == nullptr ? nullptr : input + count;
  }
  ~TwoBuffers() { EXPECT_TRUE(succeeded(unisono_memory_free(block_))); }
  TwoBuffers(const TwoBuffers&) = delete;
  TwoBuffers& operator=(const TwoBuffers&) = delete;

  std::int64_t* input = nullptr;
  std::int64_t* output = nullptr;

 private:
  std::vector<std::int64_t> own_;
  void* block_ = nullptr;
};

std::int64_t value(int rank, std::int64_t round, std::int64_t i) {
  return (round + 1) * 1000003 + i * 17 + rank * (i % 5 + 1);
}

std::int64_t sum_of_values(std::int64_t ranks, std::int64_t round, std::int64_t i) {
  return ranks * value(0, round, i) + ranks * (ranks - 1) / 2 * (i % 5 + 1);
}

// Reduces `count` elements of each rank. The input is written again after each round, so that a
// peer that reads it late gets wrong values.
void reduce_rounds(const ThreadRank& self, Reduces how, std::int64_t count, bool is_shared) {
  const std::int64_t ranks = self.ranks, all = how == Reduces::by_blocks ? count * ranks : count;
  TwoBuffers buffers(self.world, static_cast<std::size_t>(all), is_shared);
  ASSERT_NE(buffers.input, nullptr);
  for (std::int64_t round = 0; round < 3; ++round) {
    for (std::int64_t i = 0; i < all; ++i) buffers.input[i] = value(self.rank, round, i);
    unisono_request_t request = nullptr;
    const std::int64_t* result = buffers.output;
    std::int64_t first = 0;
    int code = UNISONO_OK;
    switch (how) {
      case Reduces::in_place:
        code = unisono_allreduce(UNISONO_IN_PLACE, buffers.input, count, UNISONO_INT64, UNISONO_SUM,
                                 self.world);
        result = buffers.input;
        break;
      case Reduces::apart:
        code = unisono_allreduce(buffers.input, buffers.output, count, UNISONO_INT64, UNISONO_SUM,
                                 self.world);
        break;
      case Reduces::by_blocks:
        code = unisono_reduce_scatter_block(buffers.input, buffers.output, count, UNISONO_INT64,
                                            UNISONO_SUM, self.world);
        first = self.rank * count;
        break;
      case Reduces::started:
        code =
            unisono_reduce_start(buffers.input, buffers.output, count, UNISONO_INT64, UNISONO_SUM,
                                 static_cast<int>(round % ranks), self.world, &request);
        if (code == UNISONO_OK) code = unisono_wait(&request);
        break;
    }
    ASSERT_TRUE(succeeded(code));
    if (how == Reduces::started && self.rank != round % ranks) continue;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t sum = sum_of_values(ranks, round, first + i);
      // An assertion for each of the millions of elements would take most of the time.
      if (result[i] != sum)
        FAIL() << result[i] << " is not " << sum << ", round " << round << ", element " << i;
    }
  }
}

class SharedBuffers : public testing::TestWithParam<Reduces> {};

TEST_P(SharedBuffers, GiveTheSameResultsWhoeverPassesThem) {
  const std::vector<int> numbers =
      kThreadSanitizer ? std::vector{2, 3, 5} : std::vector{1, 2, 3, 4, 5, 8};
  for (const int ranks : numbers) {
    run_threads(ranks, [](ThreadRank& self) {
      const unsigned all = (1U << self.ranks) - 1;
      for (const unsigned sharing : {all, 0U, 1U, 0b10U, 0b0101'0101U, 0b1010'1010U}) {
        SCOPED_TRACE("sharing " + std::to_string(sharing));
        // The last one goes in several segments, whose messages are references also in place.
        // Blocks of all ranks are a vector of as many elements.
        const std::int64_t longest = kSanitized ? 100'000 : 300'000;
        const std::int64_t parts = GetParam() == Reduces::by_blocks ? self.ranks : 1;
        for (const std::int64_t count :
             {std::int64_t{1}, std::int64_t{500}, std::int64_t{5000}, longest / parts}) {
          SCOPED_TRACE("count " + std::to_string(count));
          reduce_rounds(self, GetParam(), count, (sharing >> self.rank & 1) != 0);
        }
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, SharedBuffers,
                         testing::Values(Reduces::in_place, Reduces::apart, Reduces::by_blocks,
                                         Reduces::started));

TEST(Memory, IsZeroedAndAligned) {
  run_threads(2, [](ThreadRank& self) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{300'000}}) {
      void* block = nullptr;
      ASSERT_TRUE(succeeded(unisono_memory_alloc(self.world, bytes, &block)));
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 4096, 0U);
      const std::string zeros(bytes, '\0');
      EXPECT_EQ(std::memcmp(block, zeros.data(), bytes), 0);
      std::memset(block, 1, bytes);  // the next one is zeroed all the same
      EXPECT_TRUE(succeeded(unisono_memory_free(block)));
    }
  });
}

TEST(Memory, OutlivesItsJob) {
  std::vector<void*> blocks(2);
  run_threads(2, [&](ThreadRank& self) {
    void*& block = blocks[static_cast<std::size_t>(self.rank)];
    ASSERT_TRUE(succeeded(unisono_memory_alloc(self.world, 100'000, &block)));
    std::memset(block, self.rank + 1, 100'000);
  });
  for (int rank = 0; rank < 2; ++rank) {
    const auto* bytes = static_cast<const char*>(blocks[static_cast<std::size_t>(rank)]);
    ASSERT_NE(bytes, nullptr);
    EXPECT_EQ(bytes[99'999], rank + 1);
  }
  for (void* block : blocks) EXPECT_TRUE(succeeded(unisono_memory_free(block)));
}

TEST(Memory, ErrorsDoNotEndTheCommunicator) {
  run_threads(2, [](ThreadRank& self) {
    void* block = &block;
    EXPECT_TRUE(failed(unisono_memory_alloc(self.world, 8, nullptr), UNISONO_ERROR_ARGUMENT,
                       {"unisono_memory_alloc", "NULL"}));
    EXPECT_TRUE(failed(unisono_memory_alloc(nullptr, 8, &block), UNISONO_ERROR_STATE,
                       {"unisono_memory_alloc"}));
    EXPECT_EQ(block, nullptr);
    for (const std::size_t bytes : {std::size_t{1} << 60, SIZE_MAX}) {
      EXPECT_TRUE(failed(unisono_memory_alloc(self.world, bytes, &block), UNISONO_ERROR_RESOURCES,
                         {"unisono_memory_alloc", std::to_string(bytes)}));
      EXPECT_EQ(block, nullptr);
    }
    EXPECT_TRUE(succeeded(unisono_memory_free(nullptr)));
    EXPECT_TRUE(failed(unisono_memory_free(&block), UNISONO_ERROR_ARGUMENT,
                       {"unisono_memory_free", "no memory of"}));
    ASSERT_TRUE(succeeded(unisono_memory_alloc(self.world, 8, &block)));
    EXPECT_TRUE(succeeded(unisono_memory_free(block)));
    EXPECT_TRUE(failed(unisono_memory_free(block), UNISONO_ERROR_ARGUMENT, {"freed before"}));
    EXPECT_TRUE(succeeded(unisono_barrier(self.world)));
  });
}

}  // namespace
}  // namespace unisono::harness::memory_test
