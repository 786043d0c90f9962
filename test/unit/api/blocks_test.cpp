// SPDX-License-Identifier: BSD-3-Clause
// The results of the collectives that move or reduce blocks, for every number of ranks in
// rank_counts(): many counts and roots, in place, blocking, started and planned, blocks of equal
// and of different lengths, every type and operator.
#include <gtest/gtest.h>

#include <vector>

#include "harness/block_results.hpp"
#include "harness/buffer.hpp"
#include "harness/elements.hpp"
#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::blocks_test {
namespace {

class Blocks : public testing::TestWithParam<int> {
 protected:
  int ranks() const { return GetParam(); }
};

TEST_P(Blocks, EqualOnesOfEveryCount) {
  run_threads(ranks(), [](ThreadRank& self) {
    int root = 0;
    for (const std::int64_t count : {0, 1, 2, 7, 8, 65, 1000}) {
      SCOPED_TRACE(count);
      for (const bool in_place : {false, true}) {
        for (const Way way : kWays) {
          ASSERT_NO_FATAL_FAILURE(check_equal_blocks(self, count, root, in_place, way));
          root = (root + 1) % self.ranks;
        }
      }
    }
  });
}

TEST_P(Blocks, EqualOnesFromAndToEveryRoot) {
  run_threads(ranks(), [](ThreadRank& self) {
    for (int root = 0; root < self.ranks; ++root) {
      for (const bool in_place : {false, true}) {
        ASSERT_NO_FATAL_FAILURE(check_gather(self, 5, root, in_place, Way::blocking));
        ASSERT_NO_FATAL_FAILURE(check_scatter(self, 5, root, in_place, Way::blocking));
      }
    }
  });
}

// The same call again and again goes another way than the first.
TEST_P(Blocks, RepeatedCalls) {
  run_threads(ranks(), [](ThreadRank& self) {
    for (const bool in_place : {false, true}) {
      for (int i = 0; i < 5; ++i) {
        ASSERT_NO_FATAL_FAILURE(
            check_equal_blocks(self, 3, self.ranks - 1, in_place, Way::blocking));
        ASSERT_NO_FATAL_FAILURE(
            check_unequal_blocks(self, unequal_counts(self.ranks, 3), in_place, Way::blocking));
      }
    }
  });
}

TEST_P(Blocks, LargeOnes) {
  run_threads(ranks(), [](ThreadRank& self) {
    // The blocks shrink with the ranks, so that the vectors of all ranks fit into memory.
    const std::int64_t count = scaled(200'003) / self.ranks + 1;
    for (const bool in_place : {false, true}) {
      ASSERT_NO_FATAL_FAILURE(check_equal_blocks(self, count, 0, in_place, Way::blocking));
      ASSERT_NO_FATAL_FAILURE(
          check_equal_blocks(self, count, self.ranks / 2, in_place, Way::started));
      ASSERT_NO_FATAL_FAILURE(
          check_unequal_blocks(self, unequal_counts(self.ranks, count), in_place, Way::started));
    }
  });
}

TEST_P(Blocks, OfDifferentLengths) {
  run_threads(ranks(), [](ThreadRank& self) {
    const std::vector<Words> all = {Words(static_cast<std::size_t>(self.ranks), 0),
                                    unequal_counts(self.ranks, 1), unequal_counts(self.ranks, 100),
                                    Words(static_cast<std::size_t>(self.ranks), 9)};
    for (const Words& counts : all) {
      for (const bool in_place : {false, true}) {
        for (const Way way : kWays) {
          ASSERT_NO_FATAL_FAILURE(check_unequal_blocks(self, counts, in_place, way));
        }
      }
    }
  });
}

// The last piece of the short block is shorter than those of the others. In place, their outputs
// then overlap their inputs, and this piece needs more room than those before it.
TEST(LongBlocks, WhereALaterPieceNeedsTheMostRoom) {
  for (const int ranks : {2, 3, 4}) {
    run_threads(ranks, [](ThreadRank& self) {
      for (const std::int64_t first : {16'385, 40'001}) {
        Words counts(static_cast<std::size_t>(self.ranks), 90'001);
        counts[0] = first;
        for (const bool in_place : {false, true}) {
          ASSERT_NO_FATAL_FAILURE(check_unequal_blocks(self, counts, in_place, Way::blocking));
        }
      }
    });
  }
}

TEST_P(Blocks, FromOneRankAndToOneRankOrNone) {
  run_threads(ranks(), [](ThreadRank& self) {
    for (int one = 0; one < self.ranks; ++one) {
      Words counts(static_cast<std::size_t>(self.ranks), 0);
      counts[static_cast<std::size_t>(one)] = 11;
      std::vector<int> receives(counts.size(), 0);
      const auto check = [&](bool in_place) {
        check_many_to_many(self, counts, Places::packed, receives.data(), in_place, Way::blocking);
      };
      ASSERT_NO_FATAL_FAILURE(check(false));
      receives[static_cast<std::size_t>((one + 1) % self.ranks)] = 1;
      ASSERT_NO_FATAL_FAILURE(check(false));
      ASSERT_NO_FATAL_FAILURE(check(true));
    }
  });
}

// The library keeps no pointer to them.
TEST_P(Blocks, ArraysMayChangeOnceTheCallIsMade) {
  run_threads(ranks(), [](ThreadRank& self) {
    const Words given = unequal_counts(self.ranks, 700);
    const Words given_places = scattered_places(given, self.rank);
    Words counts = given;
    Words places = given_places;
    const std::int64_t own = given[static_cast<std::size_t>(self.rank)];
    const Words input = words_of(self.rank, 0, own);
    Words first = untouched_words(packed_places(given).back() + given.back() + 4 * self.ranks + 4);
    Words second = first;
    Words expected = first;
    unisono_plan_t plan = nullptr;
    unisono_request_t request = nullptr;
    ASSERT_TRUE(
        succeeded(unisono_allgatherv_plan(input.data(), own, first.data(), counts.data(),
                                          places.data(), UNISONO_INT64, self.world, &plan)));
    ASSERT_TRUE(
        succeeded(unisono_allgatherv_start(input.data(), own, second.data(), counts.data(),
                                           places.data(), UNISONO_INT64, self.world, &request)));
    counts.assign(counts.size(), -1);
    places.assign(places.size(), -1);
    ASSERT_TRUE(succeeded(unisono_plan_start(plan)));
    ASSERT_TRUE(succeeded(unisono_wait(&request)));
    ASSERT_TRUE(succeeded(unisono_plan_wait(plan)));
    for (int r = 0; r < self.ranks; ++r) {
      const auto block = static_cast<std::size_t>(r);
      put_words(expected, given_places[block], given[block], r, 0);
    }
    EXPECT_EQ(first, expected);
    EXPECT_EQ(second, expected);
    EXPECT_TRUE(succeeded(unisono_plan_free(plan)));
  });
}

TEST_P(Blocks, AnInputMayLieBetweenTheOutputsBlocks) {
  run_threads(ranks(), [](ThreadRank& self) {
    const Words counts(static_cast<std::size_t>(self.ranks), 2);
    Words places;
    for (int r = 0; r < self.ranks; ++r) places.push_back(4 * std::int64_t{r});
    Words buffer = untouched_words(4 * std::int64_t{self.ranks});
    put_words(buffer, 2, 2, self.rank, 0);
    ASSERT_TRUE(succeeded(unisono_allgatherv(buffer.data() + 2, 2, buffer.data(), counts.data(),
                                             places.data(), UNISONO_INT64, self.world)));
    for (int r = 0; r < self.ranks; ++r) {
      const auto at = static_cast<std::size_t>(4 * r);
      EXPECT_EQ(buffer[at], word(r, 0, 0));
      EXPECT_EQ(buffer[at + 1], word(r, 0, 1));
    }
  });
}

// ---- every type, and every operator ----

void check_moves_of(const ThreadRank& self, unisono_type_t type, std::int64_t count) {
  const TypedOp pair{type, is_pair(type) ? UNISONO_MINLOC : UNISONO_SUM};
  const int root = self.ranks / 2;
  Buffer mine(type, count);
  Buffer all(type, count * self.ranks);
  Buffer back(type, count);
  Buffer exchanged(type, count * self.ranks);
  mine.fill(pair, self.rank, 0, count);
  ASSERT_TRUE(succeeded(unisono_gather(mine.data(), all.data(), count, type, root, self.world)));
  ASSERT_TRUE(succeeded(unisono_scatter(all.data(), back.data(), count, type, root, self.world)));
  ASSERT_TRUE(back.holds_samples(pair, self.rank, 0, count));
  ASSERT_TRUE(back.guards_intact());
  if (self.rank != root) {
    ASSERT_TRUE(all.untouched());
    for (int r = 0; r < self.ranks; ++r) all.fill(pair, self.rank, count * r, count);
  } else {
    for (int r = 0; r < self.ranks; ++r) {
      ASSERT_TRUE(all.holds_samples(pair, r, count * r, count));
      all.fill(pair, self.rank, count * r, count);
    }
  }
  ASSERT_TRUE(succeeded(unisono_alltoall(all.data(), exchanged.data(), count, type, self.world)));
  for (int r = 0; r < self.ranks; ++r) {
    ASSERT_TRUE(exchanged.holds_samples(pair, r, count * r, count));
  }
  ASSERT_TRUE(exchanged.guards_intact());
  ASSERT_TRUE(all.guards_intact());
}

void check_reductions_of(const ThreadRank& self, TypedOp pair, std::int64_t count) {
  const std::int64_t whole = count * self.ranks;
  Buffer input(pair.type, whole);
  Buffer block(pair.type, count);
  Buffer upto(pair.type, count);
  Buffer below(pair.type, count);
  input.fill(pair, self.rank, 0, whole);
  ASSERT_TRUE(succeeded(unisono_reduce_scatter_block(input.data(), block.data(), count, pair.type,
                                                     pair.op, self.world)));
  ASSERT_TRUE(
      succeeded(unisono_scan(input.data(), upto.data(), count, pair.type, pair.op, self.world)));
  ASSERT_TRUE(
      succeeded(unisono_exscan(input.data(), below.data(), count, pair.type, pair.op, self.world)));
  ASSERT_TRUE(input.holds_samples(pair, self.rank, 0, whole)) << "the input was changed";
  const auto everyone = reference(pair, self.ranks, whole);
  ASSERT_TRUE(block.holds(std::span(everyone).subspan(static_cast<std::size_t>(count * self.rank)),
                          0, count));
  ASSERT_TRUE(upto.holds(reference(pair, self.rank + 1, count), 0, count));
  if (self.rank == 0) {
    ASSERT_TRUE(below.untouched());
  } else {
    ASSERT_TRUE(below.holds(reference(pair, self.rank, count), 0, count));
  }
  for (const Buffer* buffer : {&block, &upto, &below}) ASSERT_TRUE(buffer->guards_intact());
}

TEST_P(Blocks, OfEveryType) {
  run_threads(ranks(), [](ThreadRank& self) {
    for (unisono_type_t type = 0; type < kTypes; ++type) {
      SCOPED_TRACE(type);
      for (const std::int64_t count : {1, 9}) {
        ASSERT_NO_FATAL_FAILURE(check_moves_of(self, type, count));
      }
    }
  });
}

TEST_P(Blocks, ReductionsOfEveryTypeWithEveryOperator) {
  run_threads(ranks(), [](ThreadRank& self) {
    for (const TypedOp pair : typed_ops_for(self.ranks)) {
      SCOPED_TRACE(name_of(pair));
      ASSERT_NO_FATAL_FAILURE(check_reductions_of(self, pair, 3));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Blocks, testing::ValuesIn(rank_counts()),
                         [](const auto& suite) { return "P" + std::to_string(suite.param); });

}  // namespace
}  // namespace unisono::harness::blocks_test
