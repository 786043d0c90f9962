// SPDX-License-Identifier: BSD-3-Clause
// Communicators: rank and size, dup, split, from_list, nesting, lives of their own, and that making
// and freeing hundreds of them takes no more memory than a few.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::communicator_test {
namespace {

int rank_in(unisono_comm_t comm) {
  int rank = -1;
  EXPECT_TRUE(succeeded(unisono_comm_rank(comm, &rank)));
  return rank;
}

int size_of_comm(unisono_comm_t comm) {
  int size = -1;
  EXPECT_TRUE(succeeded(unisono_comm_size(comm, &size)));
  return size;
}

// The world ranks of comm's members, in comm's order, as its own allgather tells.
std::vector<int> members(unisono_comm_t comm, int world_rank) {
  std::vector<int> all(static_cast<std::size_t>(size_of_comm(comm)), -1);
  EXPECT_TRUE(succeeded(unisono_allgather(&world_rank, all.data(), 1, UNISONO_INT32, comm)));
  EXPECT_EQ(all[static_cast<std::size_t>(rank_in(comm))], world_rank);
  return all;
}

std::int64_t sum_over(unisono_comm_t comm, std::int64_t value) {
  std::int64_t sum = -1;
  EXPECT_TRUE(succeeded(unisono_allreduce(&value, &sum, 1, UNISONO_INT64, UNISONO_SUM, comm)));
  return sum;
}

class Communicators : public testing::TestWithParam<int> {
 protected:
  int ranks() const { return GetParam(); }
};

TEST_P(Communicators, WorldKnowsRankAndSize) {
  run_threads(ranks(), [](ThreadRank& self) {
    EXPECT_EQ(rank_in(self.world), self.rank);
    EXPECT_EQ(size_of_comm(self.world), self.ranks);
  });
}

TEST_P(Communicators, DupHasTheSameMembersAndItsOwnOrder) {
  run_threads(ranks(), [](ThreadRank& self) {
    unisono_comm_t copy = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &copy)));
    ASSERT_NE(copy, self.world);
    std::vector<int> everyone = members(copy, self.rank);
    EXPECT_TRUE(std::is_sorted(everyone.begin(), everyone.end()));
    EXPECT_EQ(std::ssize(everyone), self.ranks);
    // Half of the ranks start the two the other way round.
    unisono_request_t requests[2] = {};
    const bool odd = self.rank % 2 != 0;
    ASSERT_TRUE(succeeded(unisono_barrier_start(odd ? self.world : copy, &requests[0])));
    ASSERT_TRUE(succeeded(unisono_barrier_start(odd ? copy : self.world, &requests[1])));
    ASSERT_TRUE(succeeded(unisono_wait_all(requests, 2)));
    EXPECT_TRUE(succeeded(unisono_comm_free(copy)));
    EXPECT_EQ(sum_over(self.world, 1), self.ranks);
  });
}

TEST_P(Communicators, SplitOrdersByKeyThenRankAndNegativeColorsStayOut) {
  run_threads(ranks(), [](ThreadRank& self) {
    // Three uneven parts (every fourth rank stays out), each backwards, pairs sharing a key.
    const auto color_of = [](int rank) { return rank % 4 == 3 ? -1 : rank % 4 * 1000000; };
    const auto key_of = [](int rank) { return -(rank / 8); };
    unisono_comm_t part = nullptr;
    ASSERT_TRUE(
        succeeded(unisono_comm_split(self.world, color_of(self.rank), key_of(self.rank), &part)));
    if (color_of(self.rank) < 0) {
      EXPECT_EQ(part, nullptr);
      return;
    }
    std::vector<int> expected;
    for (int rank = 0; rank < self.ranks; ++rank) {
      if (color_of(rank) == color_of(self.rank)) expected.push_back(rank);
    }
    std::stable_sort(expected.begin(), expected.end(),
                     [&](int x, int y) { return key_of(x) < key_of(y); });
    EXPECT_EQ(members(part, self.rank), expected);
    EXPECT_EQ(sum_over(part, 1), std::ssize(expected));
    EXPECT_TRUE(succeeded(unisono_comm_free(part)));
  });
}

TEST_P(Communicators, SplitWhereNobodyTakesPart) {
  run_threads(ranks(), [](ThreadRank& self) {
    unisono_comm_t part = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_split(self.world, -1, 0, &part)));
    EXPECT_EQ(part, nullptr);
    EXPECT_EQ(sum_over(self.world, 1), self.ranks);
  });
}

TEST_P(Communicators, FromListHasTheListsOrder) {
  run_threads(ranks(), [](ThreadRank& self) {
    std::vector<int> list;
    for (int rank = self.ranks - 1; rank >= 0; rank -= 2) list.push_back(rank);
    unisono_comm_t chosen = nullptr;
    ASSERT_TRUE(succeeded(
        unisono_comm_from_list(self.world, list.data(), static_cast<int>(list.size()), &chosen)));
    if (std::find(list.begin(), list.end(), self.rank) == list.end()) {
      EXPECT_EQ(chosen, nullptr);
      return;
    }
    EXPECT_EQ(members(chosen, self.rank), list);
    EXPECT_TRUE(succeeded(unisono_comm_free(chosen)));
  });
}

TEST_P(Communicators, FromAnEmptyListIsForNobody) {
  run_threads(ranks(), [](ThreadRank& self) {
    unisono_comm_t chosen = self.world;
    ASSERT_TRUE(succeeded(unisono_comm_from_list(self.world, nullptr, 0, &chosen)));
    EXPECT_EQ(chosen, nullptr);
    EXPECT_EQ(sum_over(self.world, 1), self.ranks);
  });
}

// Halves of halves down to single ranks; each goes on being used while its own halves live.
TEST_P(Communicators, NestedSplits) {
  run_threads(ranks(), [](ThreadRank& self) {
    std::vector<unisono_comm_t> levels{self.world};
    while (size_of_comm(levels.back()) > 1) {
      const unisono_comm_t whole = levels.back();
      const int rank = rank_in(whole);
      const int size = size_of_comm(whole);
      const int low = size / 2;
      unisono_comm_t half = nullptr;
      ASSERT_TRUE(succeeded(unisono_comm_split(whole, rank < low ? 0 : 1, rank, &half)));
      levels.push_back(half);
      ASSERT_EQ(sum_over(half, 1), rank < low ? low : size - low);
      ASSERT_EQ(sum_over(whole, 1), size);
    }
    // Freed from the outside in: a part does not need its parent communicator.
    for (std::size_t level = 1; level < levels.size(); ++level) {
      ASSERT_EQ(sum_over(levels.back(), 5), size_of_comm(levels.back()) * 5);
      EXPECT_TRUE(succeeded(unisono_comm_free(levels[level])));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Communicators, testing::ValuesIn(rank_counts()),
                         [](const auto& suite) { return "P" + std::to_string(suite.param); });

TEST(CommunicatorInfo, CountsOperationsAndNamesAlgorithmAndEngine) {
  run_threads(3, [](ThreadRank& self) {
    unisono_comm_info_t before{};
    unisono_comm_info_t after{};
    before.size = after.size = sizeof(unisono_comm_info_t);
    ASSERT_TRUE(succeeded(unisono_comm_info(self.world, &before)));
    for (int i = 0; i < 10; ++i) ASSERT_EQ(sum_over(self.world, 1), 3);
    ASSERT_TRUE(succeeded(unisono_comm_info(self.world, &after)));
    EXPECT_EQ(before.operations, 0);
    EXPECT_EQ(after.operations, 10);
    EXPECT_GT(after.buffer_bytes, 0);
    EXPECT_GE(after.sleeps, before.sleeps);
    EXPECT_GE(after.helped_steps, before.helped_steps);
    EXPECT_NE(std::strlen(after.algorithm), 0U);
    const std::string engine = after.engine;
    EXPECT_TRUE(engine == "inline" || engine == "helping") << engine;
  });
}

// Nothing but the root's message to all, which it writes once.
TEST(CommunicatorInfo, CountsMessagesToSeveralRanksAndHowOftenTheyAreWritten) {
  run_threads(5, [](ThreadRank& self) {
    std::int64_t value = 0;
    for (int i = 0; i < 10; ++i) {
      if (self.rank == 2) value = i;
      ASSERT_TRUE(succeeded(unisono_broadcast(&value, 1, UNISONO_INT64, 2, self.world)));
      ASSERT_EQ(value, i);
    }
    unisono_comm_info_t info{};
    info.size = sizeof info;
    ASSERT_TRUE(succeeded(unisono_comm_info(self.world, &info)));
    EXPECT_EQ(info.multicasts, self.rank == 2 ? 10 : 0);
    EXPECT_EQ(info.stagings, info.multicasts);
  });
}

// A caller built against a shorter structure gets no byte more than it has room for.
TEST(CommunicatorInfo, WritesNoMoreThanTheSizeGiven) {
  run_threads(1, [](ThreadRank& self) {
    unisono_comm_info_t info;
    std::memset(&info, 0x5a, sizeof info);
    info.size = offsetof(unisono_comm_info_t, sleeps);
    ASSERT_TRUE(succeeded(unisono_comm_info(self.world, &info)));
    EXPECT_EQ(info.operations, 0);
    EXPECT_EQ(info.sleeps, 0x5a5a5a5a5a5a5a5a);
    EXPECT_EQ(info.algorithm[0], 0x5a);
  });
}

// ---- bounded memory ----

struct Memory {
  std::int64_t mapped_bytes = 0;
  std::int64_t resident_bytes = 0;
};

Memory process_memory() {
  std::ifstream statm("/proc/self/statm");
  Memory memory;
  statm >> memory.mapped_bytes >> memory.resident_bytes;
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  memory.mapped_bytes *= page;
  memory.resident_bytes *= page;
  return memory;
}

// Makes, uses and frees communicators of all three kinds.
void make_and_free(const ThreadRank& self, std::int64_t rounds) {
  const int list[] = {2, 0};
  std::vector<double> values(20000, 1.0);
  for (std::int64_t round = 0; round < rounds; ++round) {
    unisono_comm_t made[3] = {};
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &made[0])));
    ASSERT_TRUE(succeeded(unisono_comm_split(self.world, self.rank % 2, 0, &made[1])));
    ASSERT_TRUE(succeeded(unisono_comm_from_list(made[0], list, 2, &made[2])));
    for (const unisono_comm_t comm : made) {
      if (comm == nullptr) continue;
      ASSERT_EQ(sum_over(comm, 1), size_of_comm(comm));
      ASSERT_TRUE(succeeded(unisono_allreduce(UNISONO_IN_PLACE, values.data(), std::ssize(values),
                                              UNISONO_FLOAT64, UNISONO_MAX, comm)));
      ASSERT_TRUE(succeeded(unisono_comm_free(comm)));
    }
  }
}

TEST(CommunicatorMemory, HundredsMadeAndFreedTakeNoMoreThanAFew) {
  constexpr std::int64_t kSlack = 8 << 20;  // memory that an allocator may keep
  run_threads(4, [](ThreadRank& self) {
    ASSERT_NO_FATAL_FAILURE(make_and_free(self, 20));
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    const Memory before = process_memory();
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    ASSERT_NO_FATAL_FAILURE(make_and_free(self, scaled(200)));
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    const Memory after = process_memory();
    if (kSanitized) return;  // a sanitizer keeps freed memory; the plain build checks this
    EXPECT_LE(after.mapped_bytes, before.mapped_bytes + kSlack);
    EXPECT_LE(after.resident_bytes, before.resident_bytes + kSlack);
  });
}

TEST(CommunicatorMemory, BuffersOfOneCommunicatorStopGrowing) {
  run_threads(4, [](ThreadRank& self) {
    std::vector<double> values(static_cast<std::size_t>(scaled(400000)), 1.0);
    std::int64_t bytes[2] = {};
    for (std::int64_t& measured : bytes) {
      for (std::int64_t round = 0; round < 30; ++round) {
        const auto count = std::ssize(values) / (1 + round % 5);
        ASSERT_TRUE(succeeded(unisono_allreduce(UNISONO_IN_PLACE, values.data(), count,
                                                UNISONO_FLOAT64, UNISONO_MAX, self.world)));
      }
      unisono_comm_info_t info{};
      info.size = sizeof info;
      ASSERT_TRUE(succeeded(unisono_comm_info(self.world, &info)));
      measured = info.buffer_bytes;
    }
    EXPECT_EQ(bytes[0], bytes[1]);
    EXPECT_GT(bytes[0], 0);
    EXPECT_LE(bytes[1], 64 << 20) << "the default of UNISONO_BUFFERS";
  });
}

// As many as a program may keep open at once.
TEST(CommunicatorMemory, ManyAliveAtOnce) {
  run_threads(3, [](ThreadRank& self) {
    std::vector<unisono_comm_t> alive(static_cast<std::size_t>(scaled(100)));
    for (unisono_comm_t& comm : alive) {
      ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &comm)));
      ASSERT_EQ(sum_over(comm, 1), 3);
    }
    for (auto comm = alive.rbegin(); comm != alive.rend(); ++comm) {
      ASSERT_EQ(sum_over(*comm, 2), 6);
      ASSERT_TRUE(succeeded(unisono_comm_free(*comm)));
    }
  });
}

// ---- shrink and query ----

TEST_P(Communicators, ShrunkAfterAMismatchHaveTheSameMembers) {
  run_threads(ranks(), [](ThreadRank& self) {
    unisono_comm_t part = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_split(self.world, 0, -self.rank, &part)));
    if (self.ranks > 1) {
      std::int64_t value = 1;
      std::int64_t result = 0;
      const unisono_op_t op = self.rank == 1 ? UNISONO_SUM : UNISONO_MAX;
      EXPECT_TRUE(failed(unisono_allreduce(&value, &result, 1, UNISONO_INT64, op, part),
                         UNISONO_ERROR_MISMATCH));
    }
    unisono_comm_t again = nullptr;
    ASSERT_TRUE(succeeded(unisono_shrink(part, &again)));
    std::vector<int> backwards = members(again, self.rank);
    EXPECT_TRUE(std::is_sorted(backwards.rbegin(), backwards.rend())) << "in the old order";
    EXPECT_EQ(std::ssize(backwards), self.ranks);
    EXPECT_TRUE(succeeded(unisono_comm_free(part)));
    EXPECT_EQ(sum_over(again, 1), self.ranks);
    EXPECT_TRUE(succeeded(unisono_comm_free(again)));
    EXPECT_EQ(sum_over(self.world, 1), self.ranks) << "others are not concerned";
  });
}

TEST_P(Communicators, ARequestHasToEndBeforeAShrink) {
  run_threads(ranks(), [](ThreadRank& self) {
    unisono_comm_t part = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &part)));
    unisono_request_t request = nullptr;
    ASSERT_TRUE(succeeded(unisono_barrier_start(part, &request)));
    unisono_comm_t again = nullptr;
    EXPECT_TRUE(failed(unisono_shrink(part, &again), UNISONO_ERROR_STATE, {"outstanding"}));
    EXPECT_EQ(again, nullptr);
    EXPECT_TRUE(succeeded(unisono_wait(&request)));
    ASSERT_TRUE(succeeded(unisono_barrier(self.world))) << "all have ended theirs";
    ASSERT_TRUE(succeeded(unisono_shrink(part, &again)));
    EXPECT_EQ(sum_over(again, 1), self.ranks);
  });
}

TEST_P(Communicators, AQueryComparesTheWordsOfAll) {
  run_threads(ranks(), [](ThreadRank& self) {
    const auto holds = [&self](unisono_compare_t how, std::uint64_t value) {
      int result = -1;
      EXPECT_TRUE(succeeded(unisono_query(self.world, how, value, &result)));
      return result;
    };
    EXPECT_EQ(holds(UNISONO_EQUAL, 0), 1) << "before anybody has published";
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    ASSERT_TRUE(
        succeeded(unisono_publish(self.world, UINT64_MAX - static_cast<std::uint64_t>(self.rank))));
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    const auto least = UINT64_MAX - static_cast<std::uint64_t>(self.ranks - 1);
    EXPECT_EQ(holds(UNISONO_GREATER_EQUAL, least), 1) << "unsigned";
    EXPECT_EQ(holds(UNISONO_GREATER, least), 0);
    EXPECT_EQ(holds(UNISONO_LESS_EQUAL, UINT64_MAX), 1);
    EXPECT_EQ(holds(UNISONO_LESS, UINT64_MAX), 0);
    EXPECT_EQ(holds(UNISONO_NOT_EQUAL, least - 1), 1);
    EXPECT_EQ(holds(UNISONO_NOT_EQUAL, least), 0);
    EXPECT_EQ(holds(UNISONO_EQUAL, UINT64_MAX), self.ranks == 1 ? 1 : 0);
    int result = -1;
    for (const int how : {-1, 6}) {
      EXPECT_TRUE(failed(unisono_query(self.world, how, 0, &result), UNISONO_ERROR_ARGUMENT,
                         {"how is " + std::to_string(how)}));
    }
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
  });
}

TEST(RankState, TellsWhoHasLeftACommunicator) {
  run_threads(3, [](ThreadRank& self) {
    unisono_comm_t part = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &part)));
    unisono_rank_state_t state{};
    EXPECT_TRUE(failed(unisono_comm_rank_state(part, 0, &state), UNISONO_ERROR_ARGUMENT,
                       {"size is not set"}));
    state.size = sizeof state;
    for (const int rank : {-1, 3}) {
      EXPECT_TRUE(failed(unisono_comm_rank_state(part, rank, &state), UNISONO_ERROR_ARGUMENT,
                         {"rank is " + std::to_string(rank), "0 .. 2"}));
    }
    if (self.rank == 1) {
      ASSERT_TRUE(succeeded(unisono_comm_free(part)));
    } else {
      do {
        ASSERT_TRUE(succeeded(unisono_comm_rank_state(part, 1, &state)));
      } while (state.state == UNISONO_RANK_PRESENT);
      EXPECT_EQ(state.state, UNISONO_RANK_LEFT);
      EXPECT_STREQ(state.why, "rank 1 has ended its use of the communicator");
    }
    ASSERT_TRUE(succeeded(unisono_comm_rank_state(self.world, 1, &state)));
    EXPECT_EQ(state.state, UNISONO_RANK_PRESENT);
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    self.finalize();
  });
}

}  // namespace
}  // namespace unisono::harness::communicator_test
