// SPDX-License-Identifier: BSD-3-Clause
#include "memory/job_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "memory/memory_file.hpp"

namespace unisono::memory::job_memory_test {
namespace {

std::shared_ptr<JobMemory> make_memory(std::uint64_t bytes) {
  auto memory = JobMemory::map(std::move(*create_memory(bytes)), bytes);
  EXPECT_TRUE(memory.ok());
  return *memory;
}

TEST(JobMemory, SegmentsAreZeroedApartAndReused) {
  auto memory = make_memory(64 << 20);
  const std::int64_t first = *memory->allocate(100'000);
  const std::int64_t second = *memory->allocate(100'000);
  EXPECT_GE(second - first, 100'000);
  EXPECT_EQ(first % kSegmentAlignment, 0);
  ASSERT_TRUE(memory->commit(first, 100'000, "a test").ok());
  memory->at(first)[5] = std::byte{1};
  memory->release(first, 100'000);
  const std::int64_t again = *memory->allocate(100'000);
  EXPECT_EQ(again, first);
  EXPECT_EQ(memory->at(again)[5], std::byte{0});
}

// How many pages of the range this process's page tables have.
int mapped_pages(const std::byte* from, std::int64_t bytes) {
  const auto page = sysconf(_SC_PAGESIZE);
  std::vector<std::uint64_t> entries(static_cast<std::size_t>(bytes / page));
  const auto wanted = static_cast<ssize_t>(entries.size() * sizeof entries[0]);
  const int map = open("/proc/self/pagemap", O_RDONLY);
  const auto first = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(from)) / page;
  EXPECT_EQ(pread(map, entries.data(), static_cast<std::size_t>(wanted), first * 8), wanted);
  close(map);
  return static_cast<int>(
      std::ranges::count_if(entries, [](std::uint64_t entry) { return entry >> 63 != 0; }));
}

TEST(JobMemory, PagesAreMadeWithPageTablesOrWithout) {
  constexpr std::int64_t kBytes = 1 << 20;
  auto memory = make_memory(64 << 20);
  const std::int64_t offset = *memory->allocate(kBytes);
  const auto pages = static_cast<int>(kBytes / sysconf(_SC_PAGESIZE));
  ASSERT_TRUE(memory->commit_pages(offset, kBytes, "a test").ok());
  EXPECT_EQ(mapped_pages(memory->at(offset), kBytes), 0);
  const std::int64_t other = *memory->allocate(kBytes);
  ASSERT_TRUE(memory->commit(other, kBytes, "a test").ok());
  EXPECT_EQ(mapped_pages(memory->at(other), kBytes), pages);
}

TEST(JobMemory, NeighboursThatWereReleasedServeALargerSegment) {
  auto memory = make_memory(64 << 20);
  const std::int64_t a = *memory->allocate(kSegmentAlignment);
  const std::int64_t b = *memory->allocate(kSegmentAlignment);
  memory->release(a, kSegmentAlignment);
  memory->release(b, kSegmentAlignment);
  EXPECT_EQ(*memory->allocate(2 * kSegmentAlignment), a);
}

TEST(JobMemory, AKeptSegmentIsReusedAsItWas) {
  constexpr std::int64_t kBytes = 100'000, kKind = 3;
  auto memory = make_memory(64 << 20);
  const std::int64_t offset = *memory->allocate(kBytes);
  ASSERT_TRUE(memory->commit(offset, kBytes, "a test").ok());
  memory->at(offset)[5] = memory->at(offset)[8192] = std::byte{1};
  EXPECT_EQ(memory->reuse(kBytes, kKind), std::nullopt);
  memory->keep(offset, kBytes, kKind);
  EXPECT_NE(*memory->allocate(kBytes), offset);
  EXPECT_EQ(memory->reuse(kBytes, kKind + 1), std::nullopt);
  EXPECT_EQ(memory->reuse(2 * kBytes, kKind), std::nullopt);
  EXPECT_EQ(memory->reuse(kBytes, kKind), offset);
  EXPECT_EQ(memory->reuse(kBytes, kKind), std::nullopt) << "it has an owner now";
  EXPECT_EQ(memory->at(offset)[5], std::byte{1});
  memory->clear(offset + 4096, 8192);
  EXPECT_EQ(memory->at(offset)[5], std::byte{1});
  EXPECT_EQ(memory->at(offset)[8192], std::byte{0});
}

TEST(JobMemory, FewSegmentsAreKeptAndNoneIfRoomIsShort) {
  constexpr std::int64_t kBytes = kSegmentAlignment;
  auto memory = make_memory(64 << 20);
  std::vector<std::int64_t> offsets;
  for (int i = 0; i < kMostKeptSegments + 1; ++i) offsets.push_back(*memory->allocate(kBytes));
  for (int i = 0; i < kMostKeptSegments + 1; ++i) {
    memory->keep(offsets[static_cast<std::size_t>(i)], kBytes, i);
  }
  EXPECT_EQ(memory->reuse(kBytes, 0), std::nullopt) << "the oldest is released";
  EXPECT_EQ(*memory->allocate(kBytes), offsets[0]);
  EXPECT_EQ(memory->reuse(kBytes, 1), offsets[1]);
  while (memory->header().used_end + kBytes <= 64 << 20) {
    ASSERT_TRUE(memory->allocate(kBytes).ok());
  }
  // The kept ones are the last room.
  EXPECT_TRUE(memory->allocate(kBytes).ok());
  EXPECT_EQ(memory->reuse(kBytes, 2), std::nullopt);
}

TEST(JobMemory, AFullFileIsAnErrorThatNamesTheLimit) {
  auto memory = make_memory(4 << 20);
  const auto offset = memory->allocate(64 << 20);
  ASSERT_FALSE(offset.ok());
  EXPECT_EQ(offset.error().code, base::Code::resources);
  EXPECT_NE(offset.error().message.find(" of the 4194304 bytes of UNISONO_SHARED_LIMIT"),
            std::string::npos)
      << offset.error().message;
  EXPECT_TRUE(memory->allocate(1 << 20).ok()) << "what fits still fits";
}

TEST(JobMemory, AFullPartOfAHostIsAnErrorThatNamesTheLimitAndTheNumberOfHosts) {
  auto memory = make_memory(4 << 20);
  ASSERT_TRUE(memory->allocate(1 << 16).ok());
  ASSERT_TRUE(memory->confine(1, 2).ok());
  ASSERT_TRUE(memory->allocate(1 << 20).ok());
  const auto offset = memory->allocate(1 << 20);
  ASSERT_FALSE(offset.ok());
  EXPECT_NE(offset.error().message.find(
                ": 1048576 of this host's 2031616 bytes are in use. UNISONO_SHARED_LIMIT is "
                "4194304 bytes and divided by 2 hosts"),
            std::string::npos)
      << offset.error().message;
}

// A process that takes the lock of `memory` and then a signal.
pid_t fork_holder(JobMemory& memory, int signal) {
  const pid_t holder = fork();
  EXPECT_GE(holder, 0);
  if (holder == 0) {
    memory.header().lock.store(process_mark());
    raise(signal);
    memory.header().lock.store(0);  // after SIGCONT
    _exit(0);
  }
  return holder;
}

// Killed with the lock in its hands: the others go on.
TEST(JobMemory, TheLockOfADeadProcessIsTakenOver) {
  auto memory = make_memory(64 << 20);
  const pid_t holder = fork_holder(*memory, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(holder), &ended, WEXITED | WNOWAIT), 0);
  const std::uint64_t mark = memory->header().lock.load();
  EXPECT_EQ(mark >> 32, static_cast<std::uint64_t>(holder));
  EXPECT_TRUE(memory->allocate(100'000).ok()) << "of a zombie";
  ASSERT_EQ(waitpid(holder, nullptr, 0), holder);
  memory->header().lock.store(mark);
  EXPECT_TRUE(memory->allocate(100'000).ok()) << "of a process that is gone";
  EXPECT_EQ(memory->header().lock.load(), 0U);
}

TEST(JobMemory, TheLockOfADeadProcessWhoseNumberIsInUseAgainIsTakenOver) {
  auto memory = make_memory(64 << 20);
  const pid_t other = fork();
  ASSERT_GE(other, 0);
  if (other == 0) {
    memory->header().lock.store(process_mark() ^ 1);  // it began at another time
    for (;;) pause();
  }
  while (memory->header().lock.load() == 0) std::this_thread::yield();
  EXPECT_TRUE(memory->allocate(100'000).ok());
  EXPECT_EQ(memory->header().lock.load(), 0U);
  kill(other, SIGKILL);
  EXPECT_EQ(waitpid(other, nullptr, 0), other);
}

TEST(JobMemory, TheLockOfAStoppedProcessIsAnErrorUntilItGoesOn) {
  auto memory = make_memory(64 << 20);
  const std::int64_t before = *memory->allocate(100'000);
  const pid_t holder = fork_holder(*memory, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(holder, &status, WUNTRACED), holder);
  ASSERT_TRUE(WIFSTOPPED(status));

  const auto refused = memory->allocate(100'000);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::Code::resources);
  const std::string name = "process " + std::to_string(holder);
  EXPECT_NE(refused.error().message.find(name), std::string::npos) << refused.error().message;
  EXPECT_FALSE(memory->confine(0, 2).ok());
  memory->release(before, 100'000);  // which returns

  kill(holder, SIGCONT);
  ASSERT_EQ(waitpid(holder, nullptr, 0), holder);
  EXPECT_TRUE(memory->allocate(100'000).ok());
}

// A signal every 200 us until `most` have come, however long the caller takes.
class FastTimer {
 public:
  explicit FastTimer(int most) {
    most_ = most;
    came_ = 0;
    struct sigaction action {};
    action.sa_handler = [](int) {
      came_ = came_ + 1;
      if (came_ == most_) set(0);
    };
    sigaction(SIGALRM, &action, &before_);
    set(200);
  }
  ~FastTimer() {
    set(0);
    sigaction(SIGALRM, &before_, nullptr);
  }
  FastTimer(const FastTimer&) = delete;
  FastTimer& operator=(const FastTimer&) = delete;

  static bool has_ended() { return came_ >= most_; }

 private:
  static void set(int us) {
    const itimerval every{{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &every, nullptr);
  }
  static inline volatile sig_atomic_t most_ = 0;
  static inline volatile sig_atomic_t came_ = 0;
  struct sigaction before_ {};
};

TEST(JobMemory, SignalsDoNotKeepItFromReservingMemory) {
  constexpr std::int64_t kBytes = 128 << 20;  // which takes longer than the timer's interval
  auto memory = make_memory(2 * kBytes);
  const std::int64_t offset = *memory->allocate(kBytes);
  // Tried again at each signal (before Linux 6.10) it would take all of them.
  const FastTimer timer(2000);
  EXPECT_TRUE(memory->commit(offset, kBytes, "a test").ok());
  EXPECT_FALSE(FastTimer::has_ended()) << "it was interrupted again and again";
}

TEST(JobMemory, ThreadsAllocateAtOnceWithoutOverlap) {
  auto memory = make_memory(256 << 20);
  std::vector<std::int64_t> offsets(64);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 16; ++i) {
        const std::int64_t gone = *memory->allocate(3 * kSegmentAlignment);
        offsets[t * 16 + i] = *memory->allocate(2 * kSegmentAlignment);
        memory->release(gone, 3 * kSegmentAlignment);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::sort(offsets.begin(), offsets.end());
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    EXPECT_GE(offsets[i] - offsets[i - 1], 2 * kSegmentAlignment);
  }
}

}  // namespace
}  // namespace unisono::memory::job_memory_test
