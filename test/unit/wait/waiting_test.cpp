// SPDX-License-Identifier: BSD-3-Clause
// How ranks wait: waiter.hpp, doorbells.hpp, wake_pipes.hpp, short_slices.hpp.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "topology/cores.hpp"
#include "wait/background.hpp"
#include "wait/doorbells.hpp"
#include "wait/short_slices.hpp"
#include "wait/waiter.hpp"
#include "wait/wake_pipes.hpp"

namespace unisono::wait::waiting_test {
namespace {

constexpr WaitTimes kTimes = {.spin_ns = 2'000, .turn_ns = 2'000, .background_spin_ns = 200'000};

TEST(Waiter, SpinsThenYieldsThenSleepsWithinAMillisecond) {
  const WaitPolicy policy = WaitPolicy::for_ranks(kTimes, false, -1);
  EXPECT_GT(policy.spin_ns, 0);
  EXPECT_LT(policy.spin_ns + policy.yield_ns, 1'000'000);
  CoreContention contention;
  Waiter waiter(policy, contention);
  EXPECT_EQ(waiter.next(), Waiter::Next::spin);
  bool yielded = false;
  std::int64_t now = 1'000'000;
  for (auto next = waiter.next_at(now); next != Waiter::Next::sleep; next = waiter.next_at(now)) {
    yielded |= next == Waiter::Next::yield;
    now += 1'000;
  }
  EXPECT_TRUE(yielded);
  waiter.woken();
  EXPECT_NE(waiter.next_at(now), Waiter::Next::sleep);
}

TEST(Waiter, NeverSpinsWhereRanksOutnumberCores) {
  CoreContention contention;
  Waiter waiter(WaitPolicy::for_ranks(kTimes, true, -1), contention);
  EXPECT_EQ(waiter.next(), Waiter::Next::yield);
  EXPECT_EQ(WaitPolicy::for_ranks(kTimes, true, 7).spin_ns, 7) << "the setting wins";
}

TEST(Waiter, YieldsForManyTurnsOfAllRanksThatShareItsCore) {
  const std::int64_t few = WaitPolicy::for_ranks(kTimes, true, -1, 2).yield_ns;
  EXPECT_EQ(few, WaitPolicy{}.yield_ns) << "the turns of a few ranks are short";
  for (const int ranks : {16, 64, 1024}) {
    const WaitPolicy policy = WaitPolicy::for_ranks(kTimes, true, -1, ranks);
    EXPECT_GT(policy.yield_ns, few) << ranks;
    CoreContention contention;
    contention.expect_turns_of(ranks);
    Waiter waiter(policy, contention);
    // Each other rank has the core for 2 us before this one has it back.
    std::int64_t now = 1'000'000;
    int turns = 0;
    for (; waiter.next_at(now) == Waiter::Next::yield; ++turns) now += ranks * 2'000;
    EXPECT_GE(turns, 16) << ranks;
    EXPECT_LT(now, 1'000'000'000) << "an idle rank sleeps in the end: " << ranks;
  }
}

TEST(Waiter, YieldsTheLongerTheLongerATurnLasts) {
  WaitTimes slow = kTimes;
  slow.turn_ns *= 3;
  EXPECT_EQ(WaitPolicy::for_ranks(slow, true, -1, 64).yield_ns,
            3 * WaitPolicy::for_ranks(kTimes, true, -1, 64).yield_ns);
}

TEST(Waiter, SleepsInTheEndWhateverTheMachineSays) {
  const std::int64_t many = std::int64_t{1} << 62;
  const WaitPolicy policy = WaitPolicy::for_ranks(
      {.spin_ns = many, .turn_ns = many, .background_spin_ns = many}, false, -1, 1024);
  EXPECT_EQ(policy.spin_ns, base::kSecond);
  EXPECT_EQ(policy.background_spin_ns, base::kSecond);
  EXPECT_EQ(policy.yield_ns, base::kSecond);
  const WaitPolicy none = WaitPolicy::for_ranks({}, false, -1);
  EXPECT_EQ(none.spin_ns, 0);
  EXPECT_EQ(none.yield_ns, WaitPolicy{}.yield_ns);
}

// Answers to a new thread's wait, one for each microsecond, up to its first sleep.
struct Turns {
  int spins = 0, yields = 0;
};

Turns turns_before_sleep(const WaitPolicy& policy, bool is_background) {
  Turns turns;
  std::thread([&] {
    set_background_thread(is_background);
    CoreContention contention;
    Waiter waiter(policy, contention);
    for (std::int64_t now = 1'000'000;; now += 1'000) {
      const Waiter::Next next = waiter.next_at(now);
      if (next == Waiter::Next::sleep) return;
      ++(next == Waiter::Next::spin ? turns.spins : turns.yields);
    }
  }).join();
  return turns;
}

TEST(Waiter, ABackgroundThreadSpinsLongerAndNeverYields) {
  const WaitPolicy policy = WaitPolicy::for_ranks(kTimes, false, -1);
  const Turns usual = turns_before_sleep(policy, false), own = turns_before_sleep(policy, true);
  EXPECT_GT(usual.yields, 0);
  EXPECT_EQ(own.yields, 0);
  EXPECT_EQ(own.spins, kTimes.background_spin_ns / 1'000);
  EXPECT_EQ(turns_before_sleep(WaitPolicy::for_ranks(kTimes, false, 500'000), true).spins, 500)
      << "a longer setting wins";
}

TEST(Waiter, ABackgroundThreadSleepsAtOnceWhereRanksShareCores) {
  const Turns own = turns_before_sleep(WaitPolicy::for_ranks(kTimes, true, -1), true);
  EXPECT_EQ(own.spins, 0);
  EXPECT_EQ(own.yields, 0);
}

TEST(Waiter, OnlyTheThreadThatSaysSoIsInTheBackground) {
  std::thread([] {
    set_background_thread(true);
    EXPECT_TRUE(is_background_thread());
    std::thread([] { EXPECT_FALSE(is_background_thread()); }).join();
    set_background_thread(false);
    EXPECT_FALSE(is_background_thread());
  }).join();
  EXPECT_FALSE(is_background_thread());
}

// The calling thread's slice as the kernel says it: sched_runtime of its struct sched_attr.
std::uint64_t slice_ns() {
  std::array<std::uint32_t, 12> answer{};
  EXPECT_EQ(syscall(SYS_sched_getattr, 0, answer.data(), sizeof answer, 0), 0);
  return answer[6] | std::uint64_t{answer[7]} << 32;
}

// The slice of a thread that has not asked for a short one.
std::uint64_t usual_slice_ns() {
  std::uint64_t slice = 0;
  std::thread([&] { slice = slice_ns(); }).join();
  return slice;
}

TEST(ShortSlices, AreTheThreadsThatAsked) {
  const std::uint64_t usual = usual_slice_ns();
  bool granted = false;
  std::thread([&] {
    granted = ask_for_short_slices();
    EXPECT_EQ(slice_ns(), granted ? kShortSliceNs : usual);
    EXPECT_EQ(ask_for_short_slices(), granted);
    const bool inherited = granted && getpriority(PRIO_PROCESS, 0) < 0;
    std::thread([&] { EXPECT_EQ(slice_ns(), inherited ? kShortSliceNs : usual); }).join();
  }).join();
  EXPECT_EQ(usual_slice_ns(), usual);
  if (!granted) std::cout << "This kernel grants no short slices: only that is tested here.\n";
}

// Slices of a new thread after a wait with this policy came so far as to give the core away.
std::uint64_t slice_after_a_yield(const WaitPolicy& policy) {
  std::uint64_t slice = 0;
  std::thread([&] {
    CoreContention contention;
    Waiter waiter(policy, contention);
    const std::int64_t start = 1'000'000'000;
    waiter.next_at(start);
    EXPECT_EQ(waiter.next_at(start + policy.spin_ns), Waiter::Next::yield);
    slice = slice_ns();
  }).join();
  return slice;
}

TEST(ShortSlices, AreAskedForBeforeTurnsAreTaken) {
  const std::uint64_t usual = usual_slice_ns();
  bool granted = false;
  std::thread([&] { granted = ask_for_short_slices(); }).join();
  WaitPolicy policy = WaitPolicy::for_ranks(kTimes, true, -1);
  EXPECT_EQ(slice_after_a_yield(policy), granted ? kShortSliceNs : usual);
  policy.short_slices = ShortSlices::never;
  EXPECT_EQ(slice_after_a_yield(policy), usual);
  EXPECT_EQ(slice_after_a_yield(WaitPolicy::for_ranks(kTimes, false, -1)), usual)
      << "with a core of its own it leaves the thread alone";
}

TEST(Waiter, SleepsAtOnceWhereSomebodyElseComputes) {
  for (const bool oversubscribed : {false, true}) {
    const WaitPolicy policy = WaitPolicy::for_ranks(kTimes, oversubscribed, -1);
    CoreContention contention;
    std::int64_t now = 1'000'000'000;
    for (int i = 0; i < CoreContention::kSlices; ++i) {
      Waiter waiter(policy, contention);
      waiter.next_at(now);
      ASSERT_EQ(waiter.next_at(now += policy.spin_ns), Waiter::Next::yield);
      EXPECT_EQ(waiter.next_at(now += CoreContention::kSliceNs), Waiter::Next::sleep);
    }
    Waiter waiter(policy, contention);
    EXPECT_EQ(waiter.next_at(now), oversubscribed ? Waiter::Next::sleep : Waiter::Next::spin);
    EXPECT_EQ(waiter.next_at(now + policy.spin_ns), Waiter::Next::sleep);
  }
}

TEST(Doorbells, AStrokeBetweenAnnouncementAndSleepIsNotLost) {
  SleeperTable tower;
  Doorbell bells[2];
  Doorbells mine(tower, bells);
  mine.register_process();
  EXPECT_FALSE(mine.anyone_asleep());
  const std::uint32_t announced = mine.announce(1);
  EXPECT_TRUE(mine.anyone_asleep());
  mine.wake(0);  // the doorbell of another rank
  mine.wake(1);
  // Would sleep for a minute if the wake-up were lost.
  EXPECT_TRUE(mine.sleep(1, announced, 60'000'000'000));
  mine.withdraw(1);
  EXPECT_FALSE(mine.anyone_asleep());
}

TEST(Doorbells, SleepEndsWithItsTimeOrIsWithdrawn) {
  SleeperTable tower;
  Doorbell bells[1];
  Doorbells mine(tower, bells);
  EXPECT_FALSE(mine.sleep(0, mine.announce(0), 1'000'000));
  mine.withdraw(0);
  mine.announce(0);
  mine.withdraw(0);
  EXPECT_FALSE(mine.anyone_asleep());
}

// Where ranks outnumber cores, a rank that has been woken may have to wait for a core.
TEST(Doorbells, ARankIsWokenOnceForEachTimeItAnnouncesItself) {
  SleeperTable tower;
  Doorbell bells[1];
  Doorbells mine(tower, bells);
  mine.register_process(true);
  for (int round = 0; round < 3; ++round) {
    const std::uint32_t announced = mine.announce(0);
    for (int i = 0; i < 5; ++i) mine.ring(0);
    EXPECT_EQ(bells[0].wake_sequence.load(), announced + 1);
    EXPECT_TRUE(mine.sleep(0, announced, 60'000'000'000));
    // Another thread of the rank announces itself before this one has been seen to be awake.
    const std::uint32_t other = mine.announce(0);
    EXPECT_EQ(other, announced + 1);
    mine.ring(0);
    EXPECT_TRUE(mine.sleep(0, other, 60'000'000'000));
    mine.withdraw(0);
    mine.withdraw(0);
  }
}

// The hand-over that the protocol exists for: a plain store, then ring(), against announce(), a
// look and sleep(), many times over, with and without membarrier.
// `threads` of one rank sleep, and as many wake them, each the one that waits for its value.
void hand_over(bool with_fence, int threads) {
  SleeperTable tower;
  Doorbell bells[1];
  tower.needs_fence.store(with_fence ? 1 : 0);
  Doorbells sleeper(tower, bells), ringer(tower, bells);
  if (!with_fence) sleeper.register_process();
  struct Value {
    std::atomic<int> written{0}, seen{0};
  };
  std::vector<Value> values(static_cast<std::size_t>(threads));
  constexpr int kRounds = 2000;
  std::vector<std::thread> running;
  for (Value& value : values) {
    running.emplace_back([&] {
      for (int i = 1; i <= kRounds; ++i) {
        value.written.store(i, std::memory_order_release);
        ringer.ring(0);
        while (value.seen.load() < i) std::this_thread::yield();
      }
    });
    running.emplace_back([&] {
      for (int i = 1; i <= kRounds; ++i) {
        while (value.written.load(std::memory_order_acquire) < i) {
          const std::uint32_t announced = sleeper.announce(0);
          if (value.written.load(std::memory_order_acquire) < i) {
            EXPECT_TRUE(sleeper.sleep(0, announced, 60'000'000'000)) << "a wake-up was lost";
          }
          sleeper.withdraw(0);
        }
        value.seen.store(i);
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  EXPECT_FALSE(sleeper.anyone_asleep());
}

TEST(Doorbells, NoStrokeIsLostWithMembarrier) { hand_over(false, 1); }
TEST(Doorbells, NoStrokeIsLostWithFences) { hand_over(true, 1); }
TEST(Doorbells, NoStrokeIsLostAmongThreadsOfARankWithMembarrier) { hand_over(false, 3); }
TEST(Doorbells, NoStrokeIsLostAmongThreadsOfARankWithFences) { hand_over(true, 3); }

bool readable(int descriptor, int timeout_ms) {
  pollfd source = {descriptor, POLLIN, 0};
  return poll(&source, 1, timeout_ms) == 1;
}

TEST(WakePipes, WakeWhoSleepsOnDescriptors) {
  SleeperTable tower;
  Doorbell bells[2];
  Doorbells sleeper(tower, bells), ringer(tower, bells);
  sleeper.register_process(true);
  ASSERT_TRUE(sleeper.make_pipe(0, 2).ok());
  ASSERT_TRUE(ringer.make_pipe(1, 2).ok());
  std::atomic<int> value{0}, seen{0};
  constexpr int kRounds = 2000;
  std::thread writer([&] {
    for (int i = 1; i <= kRounds; ++i) {
      value.store(i, std::memory_order_release);
      ringer.ring(0);
      while (seen.load() < i) std::this_thread::yield();
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    while (value.load(std::memory_order_acquire) < i) {
      ASSERT_TRUE(sleeper.announce_poll_sleep(0));
      EXPECT_FALSE(sleeper.announce_poll_sleep(0)) << "one thread of a rank only";
      if (value.load(std::memory_order_acquire) < i) {
        EXPECT_TRUE(readable(sleeper.pipe(), 60'000)) << "a wake-up was lost";
      }
      sleeper.withdraw_poll_sleep(0);
    }
    seen.store(i);
  }
  writer.join();
  EXPECT_FALSE(sleeper.anyone_asleep());
  EXPECT_EQ(tower.no_pipes.load(), 0u);
}

TEST(WakePipes, AreRungOnceForEachTimeTheirOwnerAnnouncesItself) {
  SleeperTable tower;
  Doorbell bells[1];
  Doorbells mine(tower, bells);
  mine.register_process(true);
  ASSERT_TRUE(mine.make_pipe(0, 1).ok());
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(mine.announce_poll_sleep(0));
    for (int i = 0; i < 5; ++i) mine.ring(0);
    EXPECT_FALSE(mine.announce_poll_sleep(0)) << "the thread that was woken is still there";
    int bytes = 0;
    ASSERT_EQ(ioctl(mine.pipe(), FIONREAD, &bytes), 0);
    EXPECT_EQ(bytes, 1);
    mine.withdraw_poll_sleep(0);
    EXPECT_FALSE(readable(mine.pipe(), 0));
  }
}

TEST(WakePipes, AreGivenUpByAllWhereOneCannotBeOpened) {
  SleeperTable tower;
  Doorbell bells[2];
  Doorbells mine(tower, bells), other(tower, bells);
  ASSERT_TRUE(mine.make_pipe(0, 2).ok());
  ASSERT_TRUE(other.make_pipe(1, 2).ok());
  ASSERT_TRUE(mine.announce_poll_sleep(0));
  bells[0].pipe.process_namespace.fetch_add(1);  // as from another container
  other.wake(0);
  mine.withdraw_poll_sleep(0);
  EXPECT_EQ(mine.pipe(), -1);
  EXPECT_FALSE(mine.announce_poll_sleep(0));
}

TEST(WakePipes, OpenNothingButThatPipe) {
  PipeAddress address;
  WakePipes owner(1), ringer(1);
  ASSERT_TRUE(owner.make(address).ok());
  // Its process has ended, and the descriptor's number is another's.
  address.inode.fetch_add(1);
  EXPECT_EQ(ringer.ring(0, address), WakePipes::Rung::nobody);
  EXPECT_FALSE(readable(owner.descriptor(), 0));
  address.inode.fetch_sub(1);
  EXPECT_EQ(ringer.ring(0, address), WakePipes::Rung::yes);
  EXPECT_TRUE(readable(owner.descriptor(), 0));
}

// An open pipe outlives its owner, and ringing it raises no SIGPIPE.
TEST(WakePipes, MayBeRungWhenTheirOwnerHasEnded) {
  PipeAddress address;
  WakePipes ringer(1);
  {
    WakePipes owner(1);
    ASSERT_TRUE(owner.make(address).ok());
    EXPECT_EQ(ringer.ring(0, address), WakePipes::Rung::yes);
  }
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_EQ(ringer.ring(0, address), WakePipes::Rung::yes) << "also when it is full";
  }
  EXPECT_EQ(WakePipes(1).ring(0, address), WakePipes::Rung::nobody);
}

}  // namespace
}  // namespace unisono::wait::waiting_test
