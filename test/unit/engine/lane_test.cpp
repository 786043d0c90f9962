// SPDX-License-Identifier: BSD-3-Clause
#include "engine/lane.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace unisono::engine::lane_test {
namespace {

constexpr std::int64_t kNoLimit = 64;  // but that of the slot indexes

// The shared memory of one lane, and a view of it for each rank.
class LaneMemory {
 public:
  LaneMemory(int ranks, int channels, std::uint64_t first)
      : geometry_{.ranks = ranks, .channels = channels, .lines = 4, .data_bytes = 128} {
    const auto control = static_cast<std::size_t>(lane_control_bytes(geometry_));
    const auto bytes = control + static_cast<std::size_t>(geometry_.windows_bytes());
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
    std::fill_n(memory_.get(), bytes, std::byte{0});
    for (int r = 0; r < ranks; ++r) {
      lanes_.push_back(
          std::make_unique<Lane>(geometry_, r, memory_.get(), memory_.get() + control, first));
    }
  }
  Lane& at(int rank) { return *lanes_[static_cast<std::size_t>(rank)]; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  plan::WindowGeometry geometry_;
  std::unique_ptr<std::byte, Free> memory_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

TEST(Lane, ARankMayRunAheadByTheNumberOfChannelsAndNoFurther) {
  LaneMemory memory(2, 4, 1);
  Lane& fast = memory.at(0);
  for (std::uint64_t n = 1; n <= 4; ++n) {
    EXPECT_TRUE(fast.may_enter(n, kNoLimit)) << n;
    fast.complete(n);
  }
  EXPECT_FALSE(fast.may_enter(5, kNoLimit));
  memory.at(1).complete(1);
  EXPECT_TRUE(fast.may_enter(5, kNoLimit));
  EXPECT_FALSE(fast.may_enter(6, kNoLimit));
}

TEST(Lane, ARankMayLimitItselfFurther) {
  LaneMemory memory(2, 4, 1);
  Lane& fast = memory.at(0);
  EXPECT_TRUE(fast.may_enter(1, 1));
  fast.complete(1);
  EXPECT_FALSE(fast.may_enter(2, 1));
  EXPECT_TRUE(fast.may_enter(2, 2));
  EXPECT_TRUE(fast.may_enter(4, kNoLimit)) << "an operation without a limit of its own";
  memory.at(1).complete(1);
  EXPECT_TRUE(fast.may_enter(2, 1));
}

TEST(Lane, ALookTellsWhatAllHaveCompleted) {
  LaneMemory memory(2, 4, 1);
  Lane& fast = memory.at(0);
  fast.complete(1);
  fast.complete(2);
  memory.at(1).complete(1);
  EXPECT_FALSE(fast.was_completed_by_all(1)) << "before the look";
  fast.refresh_slowest();
  EXPECT_TRUE(fast.was_completed_by_all(1));
  EXPECT_FALSE(fast.was_completed_by_all(2));
}

TEST(Lane, ARankThatHasWaitedForNoneOfManyOperationsRunsAhead) {
  LaneMemory memory(2, 64, 1);
  Lane& lane = memory.at(0);
  const auto starts_before_it_runs_ahead = [&lane] {
    int starts = 0;
    while (!lane.runs_ahead(kNoLimit) && starts < 100) ++starts;
    return starts;
  };
  const int starts = starts_before_it_runs_ahead();
  EXPECT_GT(starts, 4);
  EXPECT_LT(starts, 64);
  EXPECT_TRUE(lane.runs_ahead(kNoLimit));
  EXPECT_FALSE(lane.runs_ahead(8)) << "it may not begin the ninth operation";
  EXPECT_TRUE(lane.runs_ahead(9));
  lane.note_wait();
  EXPECT_EQ(starts_before_it_runs_ahead(), starts);
}

TEST(Lane, ALaterOperationOfARankThatRunsAheadIsFarFromThoseInUse) {
  LaneMemory memory(2, 64, 1);
  Lane& lane = memory.at(0);
  EXPECT_EQ(lane.later_channel_base(1), lane.channel_base(9));
  // At the wrap of the slot indexes, and at that of the sequence numbers.
  EXPECT_EQ(lane.later_channel_base(55), lane.channel_base(63));
  EXPECT_EQ(lane.later_channel_base(56), lane.channel_base(0));
  EXPECT_EQ(lane.later_channel_base(60), lane.channel_base(4));
  EXPECT_LT(lane.later_channel_base(60), lane.channel_base(60));
  EXPECT_EQ(lane.later_channel_base(UINT64_MAX), lane.channel_base(7));
  LaneMemory few(2, 4, 1);  // with so few slot indexes its receivers may still need the next one
  EXPECT_EQ(few.at(0).later_channel_base(1), few.at(0).channel_base(1));
}

TEST(Lane, AnAbsentRankHoldsTheOthersBack) {
  plan::WindowGeometry geometry{.ranks = 2, .channels = 2, .lines = 1, .data_bytes = 0};
  alignas(64) std::byte memory[8192] = {};
  ASSERT_LE(lane_control_bytes(geometry), 4096);
  Lane lane(geometry, 0, memory, memory + 4096, 1000);  // rank 1's line still says 0
  EXPECT_FALSE(lane.may_enter(1002, kNoLimit));
}

TEST(Lane, OperationsCompletedOutOfOrderCountOnceTheGapIsClosed) {
  LaneMemory memory(2, 8, 1);
  Lane& lane = memory.at(0);
  lane.complete(3);
  lane.complete(2);
  EXPECT_FALSE(memory.at(1).completed_by(0, 1));
  lane.complete(5);
  lane.complete(1);
  EXPECT_TRUE(memory.at(1).completed_by(0, 3));
  EXPECT_FALSE(memory.at(1).completed_by(0, 4));
  lane.complete(4);
  EXPECT_TRUE(memory.at(1).completed_by(0, 5));
}

TEST(Lane, OtherHostsAreToldEveryHalfOfTheChannelsAndNotAllAtOnce) {
  constexpr int kChannels = 16, kHalf = kChannels / 2, kOperations = 200;
  constexpr std::uint64_t kFirst = UINT64_MAX - 50;  // the numbers wrap on the way
  LaneMemory memory(7, kChannels, kFirst);
  Lane& lane = memory.at(0);
  lane.set_remote({{1, 2}, {3}, {4, 5}, {6}});
  std::map<int, std::uint64_t> told;  // by a host's first rank: how many operations
  std::map<int, const std::uint64_t*> words;
  int most = 0, all = 0;
  for (std::uint64_t n = 1; n <= kOperations; ++n) {
    lane.complete(kFirst + n - 1);
    int now = 0;
    while (const auto update = lane.take_update(false)) {
      ++now;
      const int host = update->ranks.front();
      EXPECT_EQ(update->ranks.size(), host == 1 || host == 4 ? 2U : 1U);
      EXPECT_EQ(update->done, kFirst + n - 1);
      EXPECT_EQ(update->word, words.emplace(host, update->word).first->second);
      told[host] = n;
    }
    most = std::max(most, now);
    all += now;
    for (const int host : {1, 3, 4, 6}) EXPECT_LE(n - told[host], kHalf) << "host of " << host;
  }
  EXPECT_EQ(most, 1);
  EXPECT_LE(all, 4 * (kOperations / kHalf + 1));
  // At the end everyone hears what they do not know yet, once.
  int behind = 0;
  for (const int host : {1, 3, 4, 6}) behind += told[host] == kOperations ? 0 : 1;
  for (; const auto update = lane.take_update(true); --behind) {
    EXPECT_EQ(update->done, kFirst + kOperations - 1);
  }
  EXPECT_EQ(behind, 0);
}

// A waiting rank asks the slowest one for what may be lost, and must not ask another.
TEST(Lane, WhoIsAheadIsNoLaggard) {
  constexpr std::uint64_t kFirst = UINT64_MAX - 4;  // the numbers wrap on the way
  LaneMemory memory(3, 4, kFirst);
  Lane& lane = memory.at(0);
  lane.set_remote({{1}, {2}});
  memory.at(1).set_remote({{0}, {2}});
  for (std::uint64_t n = kFirst; n != kFirst + 8; ++n) {
    memory.at(1).complete(n);
    while (const auto update = memory.at(1).take_update(false)) *update->word = update->done;
  }
  EXPECT_EQ(lane.laggard(kFirst + 3), -1);
  EXPECT_EQ(lane.laggard(kFirst + 4), 2) << "rank 1 has completed later ones";
  EXPECT_EQ(lane.laggard(kFirst + 6), 2);
}

TEST(Lane, SequenceNumbersAreTakenInBlocks) {
  LaneMemory memory(1, 2, 7);
  EXPECT_EQ(memory.at(0).take(1), 7U);
  EXPECT_EQ(memory.at(0).take(5), 8U);
  EXPECT_EQ(memory.at(0).take(1), 13U);
}

TEST(Lane, ChannelsAndRanksHaveRecordsTasksAndWindowsOfTheirOwn) {
  LaneMemory memory(3, 4, 1);
  Lane& lane = memory.at(0);
  EXPECT_EQ(&lane.record(1, 2), &lane.record(5, 2));
  EXPECT_NE(&lane.record(1, 2), &lane.record(2, 2));
  EXPECT_NE(&lane.task(1, 0), &lane.task(1, 1));
  EXPECT_EQ(lane.channel_base(2) - lane.channel_base(1), lane.geometry().window_bytes());
  EXPECT_GE(lane.geometry().rank_stride(), 4 * lane.geometry().window_bytes());
}

// Windows at multiples of a power of two would share a few sets of every cache.
TEST(Lane, WindowsAreAnOddNumberOfLinesApart) {
  for (const std::int64_t bytes : {0, 64, 4096, 8192, 131072}) {
    const plan::WindowGeometry geometry{
        .ranks = 4, .channels = 8, .lines = 24, .data_bytes = bytes};
    EXPECT_EQ(geometry.window_bytes() / plan::kLineBytes % 2, 1);
    EXPECT_EQ(geometry.rank_stride() / plan::kLineBytes % 2, 1);
    EXPECT_GE(geometry.window_bytes(), 24 * plan::kLineBytes + bytes);
    EXPECT_GE(geometry.rank_stride(), 8 * geometry.window_bytes());
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
}  // namespace unisono::engine::lane_test
