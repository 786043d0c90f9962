// SPDX-License-Identifier: BSD-3-Clause
#include "group/job_memory.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "group/bootstrap/memory.hpp"

namespace unisono::group {
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

TEST(JobMemory, NeighboursThatWereReleasedServeALargerSegment) {
  auto memory = make_memory(64 << 20);
  const std::int64_t a = *memory->allocate(kSegmentAlignment);
  const std::int64_t b = *memory->allocate(kSegmentAlignment);
  memory->release(a, kSegmentAlignment);
  memory->release(b, kSegmentAlignment);
  EXPECT_EQ(*memory->allocate(2 * kSegmentAlignment), a);
}

TEST(JobMemory, AFullFileIsAnErrorThatNamesTheLimit) {
  auto memory = make_memory(4 << 20);
  const auto offset = memory->allocate(64 << 20);
  ASSERT_FALSE(offset.ok());
  EXPECT_EQ(offset.error().code, base::Code::resources);
  EXPECT_NE(offset.error().message.find("UNISONO_SHARED_LIMIT"), std::string::npos);
  EXPECT_TRUE(memory->allocate(1 << 20).ok()) << "what fits still fits";
}

// Killed with the lock in its hands: the others go on.
TEST(JobMemory, TheLockOfADeadProcessIsTakenOver) {
  auto memory = make_memory(64 << 20);
  const pid_t holder = fork();
  ASSERT_GE(holder, 0);
  if (holder == 0) {
    memory->header().lock.store(static_cast<std::uint32_t>(getpid()));
    raise(SIGKILL);
  }
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(holder), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(memory->header().lock.load(), static_cast<std::uint32_t>(holder));
  EXPECT_TRUE(memory->allocate(100'000).ok()) << "of a zombie";
  ASSERT_EQ(waitpid(holder, nullptr, 0), holder);
  memory->header().lock.store(static_cast<std::uint32_t>(holder));
  EXPECT_TRUE(memory->allocate(100'000).ok()) << "of a process that is gone";
  EXPECT_EQ(memory->header().lock.load(), 0U);
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
}  // namespace unisono::group
