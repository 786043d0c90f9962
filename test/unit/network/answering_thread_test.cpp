// SPDX-License-Identifier: BSD-3-Clause
#include "network/answering_thread.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "network/sleep_on.hpp"
#include "transport/virtual/datagrams.hpp"

namespace unisono::network::answering_thread_test {
namespace {

base::Descriptor event(unsigned value) {
  base::Descriptor made(eventfd(value, EFD_CLOEXEC | EFD_NONBLOCK));
  EXPECT_TRUE(made.valid());
  return made;
}

TEST(SleepOn, SaysWhichDescriptorIsReadable) {
  const base::Descriptor quiet = event(0), readable = event(1);
  EXPECT_EQ(sleep_on({quiet.get(), readable.get()}, base::kSecond), 2U);
  EXPECT_EQ(sleep_on({readable.get(), -1, readable.get()}, base::kSecond), 5U);
  EXPECT_EQ(sleep_on({quiet.get(), -1}, 0), 0U);
}

// Rank 0 of two hosts, whose datagrams nobody carries on.
class OneRank {
 public:
  explicit OneRank(std::int64_t (*clock)() = base::now_ns)
      : network_(2, {.joins = true}), region_(64) {
    reliable::ReliableOptions options;
    options.key = wire::key_of("test");
    options.ranks = 2;
    options.region = reinterpret_cast<std::byte*>(region_.data());
    options.region_bytes = region_.size() * sizeof region_[0];
    options.now_ns = clock;
    carrier = std::make_unique<Carrier>(
        std::make_unique<reliable::Reliable>(network_.attach(0), options));
    thread = std::make_unique<AnsweringThread>(*carrier, mutex);
  }
  // A message without bytes for rank 1, which is gone and lacks nothing.
  void put(std::uint64_t value) {
    if (value == 1) carrier->forget(1, reliable::Departure::lost);
    carrier->transport().put({.target = 1, .flag = region_.data(), .flag_value = value});
  }

 private:
  transport::VirtualDatagramNetwork network_;
  std::vector<std::uint64_t> region_;

 public:
  std::mutex mutex;
  std::unique_ptr<Carrier> carrier;
  std::unique_ptr<AnsweringThread> thread;
};

TEST(AnsweringThread, LooksAtOnceWhenItIsHandedOver) {
  std::atomic<int> turns = 0;
  const auto heard = [&turns](bool came) {
    EXPECT_FALSE(came);
    ++turns;
    turns.notify_all();
    return false;
  };
  OneRank rank;
  ASSERT_TRUE(rank.thread->start({.heard = heard, .someone_died = [] {}}));
  for (int before = 0; before < 3; ++before) {
    rank.thread->hand_over(true);
    turns.wait(before);
  }
  EXPECT_GE(turns.load(), 3);
}

TEST(AnsweringThread, ReportsDeathsWhileItSleeps) {
  const base::Descriptor deaths = event(0);
  std::atomic<bool> has_reported = false;
  const auto someone_died = [&] {
    eventfd_t count = 0;
    eventfd_read(deaths.get(), &count);
    has_reported = true;
    has_reported.notify_all();
  };
  OneRank rank;
  ASSERT_TRUE(rank.thread->start(
      {.heard = [](bool) { return false; }, .deaths = deaths.get(), .someone_died = someone_died}));
  rank.thread->hand_over(true);
  eventfd_write(deaths.get(), 1);
  has_reported.wait(false);
  EXPECT_TRUE(has_reported);
}

TEST(AnsweringThread, AnArrivalEndsTheSleepOfAnotherThread) {
  OneRank rank;
  ASSERT_TRUE(rank.thread->start({.heard = [](bool) { return false; }, .someone_died = [] {}}));
  const int first = rank.thread->announce();
  rank.thread->note_arrival();
  EXPECT_EQ(rank.thread->sleep(first, base::kSecond, {}), AnsweringThread::Woken::by_network);
  const base::Descriptor other = event(1);
  EXPECT_EQ(rank.thread->sleep(first, base::kSecond, {.second = other.get()}),
            AnsweringThread::Woken::by_other);
  rank.thread->withdraw(first);
  rank.thread->note_arrival();
  const int later = rank.thread->announce();
  EXPECT_EQ(rank.thread->sleep(later, 0, {}), AnsweringThread::Woken::by_time)
      << "it came before there was a sleeper that would have to be told";
  rank.thread->withdraw(later);
}

// The first that wakes does not take the event from the others.
TEST(AnsweringThread, AnArrivalEndsTheSleepOfAllThreads) {
  OneRank rank;
  ASSERT_TRUE(rank.thread->start({.heard = [](bool) { return false; }, .someone_died = [] {}}));
  std::vector<int> sleepers;
  for (int i = 0; i < DatagramSleepers::kMost; ++i) sleepers.push_back(rank.thread->announce());
  const int untold = rank.thread->announce();
  EXPECT_EQ(untold, DatagramSleepers::kUntold);
  EXPECT_EQ(rank.thread->sleep(untold, base::kSecond, {}), AnsweringThread::Woken::by_time)
      << "it looks again soon";
  rank.thread->withdraw(untold);
  for (int turn = 0; turn < 2; ++turn) {
    rank.thread->note_arrival();
    for (const int sleeper : sleepers) {
      EXPECT_EQ(rank.thread->sleep(sleeper, 0, {}), AnsweringThread::Woken::by_network);
      EXPECT_EQ(rank.thread->sleep(sleeper, 0, {}), AnsweringThread::Woken::by_time);
    }
  }
  for (const int sleeper : sleepers) rank.thread->withdraw(sleeper);
}

// Without the thread, which might send it first.
TEST(AnsweringThread, ASleepEndsWhenARequestIsDueAgain) {
  OneRank rank;
  rank.carrier->progress();
  rank.carrier->reliable().awaits(1);
  const std::int64_t due_ns = rank.carrier->sleep_target(false).deadline_ns;
  const int sleeper = rank.thread->announce();
  EXPECT_EQ(rank.thread->sleep(sleeper, base::kSecond, {}), AnsweringThread::Woken::by_network);
  EXPECT_EQ(rank.thread->sleep(sleeper, base::kSecond, {}), AnsweringThread::Woken::by_network)
      << "nobody has sent it";
  rank.thread->withdraw(sleeper);
  EXPECT_GE(base::now_ns(), due_ns);
  rank.carrier->progress();
  EXPECT_GT(rank.carrier->sleep_target(false).deadline_ns, due_ns);
}

// However busy the machine is, the rank's packets follow one another at one pace.
std::int64_t even_clock() {
  static std::atomic<std::int64_t> time_ns = 0;
  return time_ns += base::kMicrosecond;
}

// Where a rank does not look, its thread sends what waits. Arrivals it leaves to the rank.
TEST(AnsweringThread, EndsABurst) {
  OneRank rank(even_clock);
  ASSERT_TRUE(rank.thread->start({.heard = [](bool) { return false; },
                                  .someone_died = [] {},
                                  .may_gather = [](std::int64_t) { return true; }}));
  std::uint64_t flag = 0;
  const auto waits = [&rank] { return !rank.carrier->reliable().outbox().is_empty(); };
  const auto waits_still = [&] {
    const std::lock_guard lock(rank.mutex);
    return waits();
  };
  for (int burst = 0; burst < 3; ++burst) {
    for (bool waiting = false; !waiting;) {
      rank.thread->note_look();
      const std::lock_guard lock(rank.mutex);
      rank.put(++flag);
      waiting = waits();
    }
    while (waits_still()) std::this_thread::yield();
  }
  EXPECT_GT(flag, reliable::Burst::kRow);
}

}  // namespace
}  // namespace unisono::network::answering_thread_test
