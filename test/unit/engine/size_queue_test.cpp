// SPDX-License-Identifier: BSD-3-Clause
#include "engine/size_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "engine/told_progress.hpp"
#include "unit/engine/size_queue_memory.hpp"

namespace unisono::engine::size_queue_test {
namespace {

using test::SizeQueueMemory;
using Ranks = std::vector<std::int32_t>;

constexpr std::int64_t kNoLimit = INT64_MAX;  // but that of the slot indexes

// A program that writes to ranks of this host, into buffers that only their owners read.
plan::Program to_owners(Ranks receivers) {
  plan::Program program;
  program.only_owners_read = true;
  program.receivers_here = std::move(receivers);
  return program;
}
// One whose buffers all ranks of the host read, and that writes to ranks of other hosts.
plan::Program to_hosts(Ranks receivers) {
  plan::Program program;
  program.remote_receivers = std::move(receivers);
  return program;
}

TEST(SizeQueue, ARankMayRunAheadByTheNumberOfSlotIndexesAndNoFurther) {
  SizeQueueMemory memory(2, 4, 1);
  SizeQueue& fast = memory.at(0);
  for (std::uint64_t n = 1; n <= 4; ++n) {
    EXPECT_TRUE(fast.may_enter(n, kNoLimit, {})) << n;
    fast.complete(n);
  }
  EXPECT_FALSE(fast.may_enter(5, kNoLimit, {}));
  memory.at(1).complete(1);
  EXPECT_TRUE(fast.may_enter(5, kNoLimit, {}));
  EXPECT_FALSE(fast.may_enter(6, kNoLimit, {}));
}

TEST(SizeQueue, ARankMayLimitItselfFurther) {
  SizeQueueMemory memory(2, 4, 1);
  SizeQueue& fast = memory.at(0);
  EXPECT_TRUE(fast.may_enter(1, 1, {}));
  fast.complete(1);
  EXPECT_FALSE(fast.may_enter(2, 1, {}));
  EXPECT_TRUE(fast.may_enter(2, 2, {}));
  EXPECT_TRUE(fast.may_enter(4, kNoLimit, {})) << "an operation without a limit of its own";
  memory.at(1).complete(1);
  EXPECT_TRUE(fast.may_enter(2, 1, {}));
}

// The rank that it writes to keeps up, and another one does not.
TEST(SizeQueue, ARankOvertakesThoseThatItDoesNotWriteTo) {
  for (const std::uint64_t first : {std::uint64_t{1}, UINT64_MAX - 100}) {  // the numbers wrap
    constexpr int kSlotIndexes = 64;
    SizeQueueMemory memory(3, kSlotIndexes, first);
    SizeQueue& fast = memory.at(0);
    const plan::Program program = to_owners({1});
    std::uint64_t n = first;
    for (; fast.may_enter(n, kNoLimit, program); ++n) {
      ASSERT_LT(n - first, 1000U);
      fast.note_entry(n, program);
      fast.complete(n);
      memory.at(1).complete(n);
    }
    EXPECT_EQ(n - first, kFarTurns * kSlotIndexes);
    memory.at(2).complete(first);
    EXPECT_TRUE(fast.may_enter(n, kNoLimit, program));
    EXPECT_FALSE(fast.may_enter(n + 1, kNoLimit, program));
    EXPECT_FALSE(fast.may_enter(n, kFarTurns * kSlotIndexes - 1, program)) << "its own limit";
    EXPECT_FALSE(fast.may_enter(n, kNoLimit, to_owners({1, 2}))) << "it writes to the slow one too";
    EXPECT_FALSE(fast.may_enter(n, kNoLimit, {})) << "others read the buffers";
  }
}

TEST(SizeQueue, ARankWaitsForTheRanksThatItWritesTo) {
  SizeQueueMemory memory(3, 4, 1);
  SizeQueue& fast = memory.at(0);
  const plan::Program program = to_owners({1});
  for (std::uint64_t n = 1; n <= 4; ++n) {
    ASSERT_TRUE(fast.may_enter(n, kNoLimit, program));
    fast.note_entry(n, program);
    fast.complete(n);
    memory.at(2).complete(n);
  }
  EXPECT_FALSE(fast.may_enter(5, kNoLimit, program));
  EXPECT_TRUE(fast.may_enter(5, kNoLimit, to_owners({2})));
  EXPECT_TRUE(fast.may_enter(5, kNoLimit, to_owners({})));
  memory.at(1).complete(1);
  EXPECT_TRUE(fast.may_enter(5, kNoLimit, program));
  EXPECT_FALSE(fast.may_enter(6, kNoLimit, program));
}

TEST(SizeQueue, BuffersThatOthersHaveReadAreFreeWhenAllHaveCompletedTheOperation) {
  SizeQueueMemory memory(2, 4, 1);
  SizeQueue& fast = memory.at(0);
  const plan::Program owners = to_owners({}), shared;
  for (std::uint64_t n = 1; n <= 4; ++n) {
    fast.note_entry(n, n == 2 ? shared : owners);
    fast.complete(n);
  }
  ASSERT_TRUE(fast.may_enter(5, kNoLimit, owners));
  fast.note_entry(5, owners);
  fast.complete(5);
  EXPECT_FALSE(fast.may_enter(6, kNoLimit, owners)) << "operation 2 was in these buffers";
  EXPECT_TRUE(fast.may_enter(7, kNoLimit, owners)) << "and it is in no others";
  memory.at(1).complete(1);
  EXPECT_FALSE(fast.may_enter(6, kNoLimit, owners));
  memory.at(1).complete(2);
  EXPECT_TRUE(fast.may_enter(6, kNoLimit, owners));
  fast.note_entry(6, owners);
  fast.complete(6);
  for (std::uint64_t n = 7; n <= 9; ++n) fast.complete(n);
  EXPECT_TRUE(fast.may_enter(10, kNoLimit, owners)) << "operation 6 was in these buffers since";
}

// Its later operations are complete, but the one before in these buffers is not.
TEST(SizeQueue, ARankDoesNotOvertakeItself) {
  SizeQueueMemory memory(2, 4, 1);
  SizeQueue& size_queue = memory.at(0);
  for (std::uint64_t n = 2; n <= 4; ++n) size_queue.complete(n);
  EXPECT_FALSE(size_queue.may_enter(5, kNoLimit, to_owners({})));
  size_queue.complete(1);
  EXPECT_TRUE(size_queue.may_enter(5, kNoLimit, to_owners({})));
}

TEST(SizeQueue, ALookTellsWhatAllHaveCompleted) {
  SizeQueueMemory memory(2, 4, 1);
  SizeQueue& fast = memory.at(0);
  fast.complete(1);
  fast.complete(2);
  memory.at(1).complete(1);
  EXPECT_FALSE(fast.was_completed_by_all_here(1)) << "before the look";
  fast.refresh_slowest();
  EXPECT_TRUE(fast.was_completed_by_all_here(1));
  EXPECT_FALSE(fast.was_completed_by_all_here(2));
}

TEST(SizeQueue, ARankThatHasWaitedForNoneOfManyOperationsRunsAhead) {
  SizeQueueMemory memory(2, 64, 1);
  SizeQueue& size_queue = memory.at(0);
  const auto starts_before_it_runs_ahead = [&size_queue] {
    int starts = 0;
    while (!size_queue.runs_ahead(kNoLimit) && starts < 100) ++starts;
    return starts;
  };
  const int starts = starts_before_it_runs_ahead();
  EXPECT_GT(starts, 4);
  EXPECT_LT(starts, 64);
  EXPECT_TRUE(size_queue.runs_ahead(kNoLimit));
  EXPECT_FALSE(size_queue.runs_ahead(8)) << "it may not begin the ninth operation";
  EXPECT_TRUE(size_queue.runs_ahead(9));
  size_queue.note_wait();
  EXPECT_EQ(starts_before_it_runs_ahead(), starts);
}

TEST(SizeQueue, ALaterOperationOfARankThatRunsAheadIsFarFromThoseInUse) {
  SizeQueueMemory memory(2, 64, 1);
  SizeQueue& size_queue = memory.at(0);
  EXPECT_EQ(size_queue.later_buffers_of(1), size_queue.buffers_of(9));
  // At the wrap of the slot indexes, and at that of the sequence numbers.
  EXPECT_EQ(size_queue.later_buffers_of(55), size_queue.buffers_of(63));
  EXPECT_EQ(size_queue.later_buffers_of(56), size_queue.buffers_of(0));
  EXPECT_EQ(size_queue.later_buffers_of(60), size_queue.buffers_of(4));
  EXPECT_LT(size_queue.later_buffers_of(60), size_queue.buffers_of(60));
  EXPECT_EQ(size_queue.later_buffers_of(UINT64_MAX), size_queue.buffers_of(7));
  SizeQueueMemory few(2, 4,
                      1);  // with so few slot indexes its receivers may still need the next one
  EXPECT_EQ(few.at(0).later_buffers_of(1), few.at(0).buffers_of(1));
}

TEST(SizeQueue, AnAbsentRankHoldsTheOthersBack) {
  plan::ReceiveGeometry geometry{.ranks = 2, .slot_indexes = 2, .lines = 1, .data_bytes = 0};
  alignas(64) std::byte memory[8192] = {};
  ASSERT_LE(size_queue_control_bytes(geometry), 4096);
  SizeQueue size_queue(geometry, 0, memory, memory + 4096, 1000);  // rank 1's line still says 0
  EXPECT_FALSE(size_queue.may_enter(1002, kNoLimit, {}));
}

TEST(SizeQueue, OperationsCompletedOutOfOrderCountOnceTheGapIsClosed) {
  SizeQueueMemory memory(2, 8, 1);
  SizeQueue& size_queue = memory.at(0);
  size_queue.complete(3);
  size_queue.complete(2);
  EXPECT_FALSE(memory.at(1).completed_by(0, 1));
  size_queue.complete(5);
  size_queue.complete(1);
  EXPECT_TRUE(memory.at(1).completed_by(0, 3));
  EXPECT_FALSE(memory.at(1).completed_by(0, 4));
  size_queue.complete(4);
  EXPECT_TRUE(memory.at(1).completed_by(0, 5));
}

// The shared memory is that of all hosts here, so a rank sees at once what others complete.
Ranks tell_due(SizeQueue& size_queue, const Ranks& senders) {
  const auto due = size_queue.told().take_due(size_queue.done(), senders);
  Ranks told(due.begin(), due.end());
  for (const int rank : told) size_queue.told().note_told(rank, size_queue.done());
  std::ranges::sort(told);
  return told;
}

TEST(SizeQueue, SendersOfOtherHostsAreToldEveryHalfOfTheSlotIndexesAndTheOthersSeldom) {
  constexpr int kSlotIndexes = 16, kHalf = kSlotIndexes / 2, kOperations = 400;
  constexpr std::uint64_t kFirst = UINT64_MAX - 50;  // the numbers wrap on the way
  SizeQueueMemory memory(7, kSlotIndexes, kFirst);
  SizeQueue& size_queue = memory.at(0);
  size_queue.set_remote({{1, 2}, {3}, {4, 5}});  // and 6 is on this host
  std::map<int, int> told, times;  // by rank: after how many operations, and how often
  std::size_t most = 0;
  for (int n = 1; n <= kOperations; ++n) {
    size_queue.complete(kFirst + static_cast<std::uint64_t>(n) - 1);
    const Ranks now = tell_due(size_queue, {2, 3});
    EXPECT_EQ(std::ranges::adjacent_find(now), now.end());
    for (const int rank : now) {
      told[rank] = n;
      ++times[rank];
    }
    most = std::max(most, now.size());
    EXPECT_EQ(size_queue.done(), kFirst + static_cast<std::uint64_t>(n) - 1);
    for (const int rank : {2, 3}) EXPECT_LT(n - told[rank], kHalf) << "rank " << rank;
    for (const int rank : {1, 4, 5}) EXPECT_LT(n - told[rank], kFarTurns * kHalf) << rank;
  }
  EXPECT_LE(most, 2U) << "hosts take turns";
  for (const int rank : {2, 3}) EXPECT_LE(times[rank], kOperations / kHalf + 1);
  for (const int rank : {1, 4, 5}) EXPECT_LE(times[rank], kOperations / (kFarTurns * kHalf) + 1);
  EXPECT_EQ(times.count(6), 0U);
  // At the end everyone hears what they do not know yet, once.
  Ranks behind;
  for (const int rank : {1, 2, 3, 4, 5}) {
    if (told[rank] != kOperations) behind.push_back(rank);
  }
  const auto untold = size_queue.told().take_untold(size_queue.done());
  const Ranks last(untold.begin(), untold.end());
  EXPECT_EQ(last, behind);
  for (const int rank : last) size_queue.told().note_told(rank, size_queue.done());
  EXPECT_TRUE(size_queue.told().take_untold(size_queue.done()).empty());
}

TEST(SizeQueue, WhoIsToldInVainIsToldAgain) {
  SizeQueueMemory memory(2, 4, 1);
  SizeQueue& size_queue = memory.at(0);
  size_queue.set_remote({{1}});
  size_queue.complete(1);
  size_queue.complete(2);
  EXPECT_EQ(size_queue.told().take_due(size_queue.done(), Ranks{1}).size(),
            1U);  // and there was no memory for the message
  EXPECT_EQ(size_queue.told().take_due(size_queue.done(), Ranks{1}).size(), 1U);
  size_queue.told().note_told(1, size_queue.done());
  EXPECT_TRUE(size_queue.told().take_due(size_queue.done(), Ranks{1}).empty());
}

TEST(SizeQueue, AnOperationWaitsForItsReceiversAndNotForOtherRanksOfOtherHosts) {
  constexpr std::uint64_t kFirst = UINT64_MAX - 4;  // the numbers wrap on the way
  constexpr int kSlotIndexes = 4;
  SizeQueueMemory memory(3, kSlotIndexes, kFirst);
  SizeQueue& size_queue = memory.at(0);
  size_queue.set_remote({{1}, {2}});
  // Rank 2 writes to nobody, and nobody writes to it.
  std::uint64_t n = kFirst;
  for (; n != kFirst + kSlotIndexes; ++n) {
    ASSERT_TRUE(size_queue.may_enter(n, kNoLimit, to_hosts(Ranks{1})));
    size_queue.complete(n);
  }
  EXPECT_FALSE(size_queue.may_enter(n, kNoLimit, to_hosts(Ranks{1})));
  EXPECT_EQ(size_queue.laggard(n, Ranks{1}), 1);
  EXPECT_TRUE(size_queue.may_enter(n, kNoLimit, {})) << "it writes to nobody";
  EXPECT_EQ(size_queue.laggard(n, {}), -1);
  memory.at(1).complete(kFirst);
  EXPECT_TRUE(size_queue.may_enter(n, kNoLimit, to_hosts(Ranks{1})));
  EXPECT_FALSE(size_queue.may_enter(n, kNoLimit, to_hosts(Ranks{1, 2})));
  EXPECT_EQ(size_queue.laggard(n, Ranks{1, 2}), 2) << "rank 1 has completed a later one";
  // In the end all wait for a rank that is far behind.
  for (std::uint64_t m = kFirst + 1; m != kFirst + 2 * kFarTurns * kSlotIndexes; ++m) {
    memory.at(1).complete(m);
  }
  const std::uint64_t end = kFirst + kFarTurns * kSlotIndexes;
  for (; n != end; ++n) {
    ASSERT_TRUE(size_queue.may_enter(n, kNoLimit, to_hosts(Ranks{1})));
    size_queue.complete(n);
  }
  EXPECT_FALSE(size_queue.may_enter(end, kNoLimit, to_hosts(Ranks{1})));
  EXPECT_EQ(size_queue.laggard(end, Ranks{1}), 2);
  memory.at(2).complete(kFirst);
  EXPECT_TRUE(size_queue.may_enter(end, kNoLimit, to_hosts(Ranks{1})));
}

TEST(SizeQueue, ARankOfThisHostHoldsBackEveryOperation) {
  SizeQueueMemory memory(3, 2, 1);
  SizeQueue& size_queue = memory.at(0);
  size_queue.set_remote({{2}});
  size_queue.complete(1);
  size_queue.complete(2);
  EXPECT_FALSE(size_queue.may_enter(3, kNoLimit, {}));
  memory.at(1).complete(1);
  EXPECT_TRUE(size_queue.may_enter(3, kNoLimit, {}));
}

// It has not written to this rank for long, so its knowledge is old. And it may not enter before
// operations have ended that this rank has begun already.
TEST(SizeQueue, ASenderIsToldWhatItNeedsToEnter) {
  constexpr std::uint64_t kFirst = UINT64_MAX - 4;  // the numbers wrap on the way
  SizeQueueMemory memory(2, 4, kFirst);
  SizeQueue& size_queue = memory.at(0);
  size_queue.set_remote({{1}});
  EXPECT_TRUE(size_queue.told().know_enough(kFirst + 3, Ranks{1}));
  EXPECT_FALSE(size_queue.told().know_enough(kFirst + 4, Ranks{1}));
  EXPECT_TRUE(size_queue.told().take_needed(size_queue.done(), kFirst + 4, Ranks{1}).empty())
      << "there is nothing to tell";
  size_queue.complete(kFirst);
  EXPECT_TRUE(size_queue.told().take_needed(size_queue.done(), kFirst + 4, {}).empty());
  EXPECT_EQ(size_queue.told().take_needed(size_queue.done(), kFirst + 4, Ranks{1}).size(), 1U);
  size_queue.told().note_told(1, size_queue.done());
  EXPECT_TRUE(size_queue.told().know_enough(kFirst + 4, Ranks{1}));
  EXPECT_FALSE(size_queue.told().know_enough(kFirst + 5, Ranks{1}));
  EXPECT_TRUE(size_queue.told().take_needed(size_queue.done(), kFirst + 5, Ranks{1}).empty());
  size_queue.complete(kFirst + 1);
  EXPECT_EQ(size_queue.told().take_needed(size_queue.done(), kFirst + 5, Ranks{1}).size(), 1U);
}

TEST(SizeQueue, SequenceNumbersAreTakenInBlocks) {
  SizeQueueMemory memory(1, 2, 7);
  EXPECT_EQ(memory.at(0).take(1), 7U);
  EXPECT_EQ(memory.at(0).take(5), 8U);
  EXPECT_EQ(memory.at(0).take(1), 13U);
}

TEST(SizeQueue, SlotIndexesAndRanksHaveRecordsTasksAndBuffersOfTheirOwn) {
  SizeQueueMemory memory(3, 4, 1);
  SizeQueue& size_queue = memory.at(0);
  EXPECT_EQ(&size_queue.record(1, 2), &size_queue.record(5, 2));
  EXPECT_NE(&size_queue.record(1, 2), &size_queue.record(2, 2));
  EXPECT_NE(&size_queue.task(1, 0), &size_queue.task(1, 1));
  EXPECT_EQ(size_queue.buffers_of(2) - size_queue.buffers_of(1),
            size_queue.geometry().receive_buffer_bytes());
  EXPECT_GE(size_queue.geometry().rank_stride(), 4 * size_queue.geometry().receive_buffer_bytes());
}

// Receive buffers at multiples of a power of two would share a few sets of every cache.
TEST(SizeQueue, ReceiveBuffersAreAnOddNumberOfLinesApart) {
  for (const std::int64_t bytes : {0, 64, 4096, 8192, 131072}) {
    const plan::ReceiveGeometry geometry{
        .ranks = 4, .slot_indexes = 8, .lines = 24, .data_bytes = bytes};
    EXPECT_EQ(geometry.receive_buffer_bytes() / plan::kLineBytes % 2, 1);
    EXPECT_EQ(geometry.rank_stride() / plan::kLineBytes % 2, 1);
    EXPECT_GE(geometry.receive_buffer_bytes(), 24 * plan::kLineBytes + bytes);
    EXPECT_GE(geometry.rank_stride(), 8 * geometry.receive_buffer_bytes());
  }
}

TEST(Tag, WrapsAndTellsOperationsAndCallsApart) {
  const std::uint64_t last = (std::uint64_t{1} << 40) - 1;
  EXPECT_EQ(make_tag(last + 1, 5), 5U);
  EXPECT_NE(make_tag(last, 5), make_tag(last + 1, 5));
  EXPECT_TRUE(same_operation(make_tag(last, 5), make_tag(last, 6)));
  EXPECT_FALSE(same_operation(make_tag(last, 5), make_tag(last + 1, 5)));
  // A word that was never written belongs to no operation, the one after the wrap included.
  EXPECT_FALSE(same_operation(0, make_tag(last + 1, 5)));
}

}  // namespace
}  // namespace unisono::engine::size_queue_test
