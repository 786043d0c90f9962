// SPDX-License-Identifier: BSD-3-Clause
#include "memory/job_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/process_record.hpp"
#include "base/thread_signals.hpp"

namespace unisono::memory {
namespace {

using base::Code;
using base::Error;

std::int64_t whole_segments(std::int64_t bytes) {
  return (bytes + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
}

// A waiting process yields this many times before it checks whether the lock's holder is dead.
constexpr int kLockLooks = 1000;

bool has_ended(std::uint32_t pid) {
  const auto record = base::read_process(static_cast<pid_t>(pid));
  return !record || record->state == 'Z' || record->state == 'X';
}

// A process holds the lock for a few dozen instructions and may be killed at any of them. Then the
// next one takes it over. Changes under it are ordered such that an interrupted one can only lose
// free room.
class HeaderLock {
 public:
  explicit HeaderLock(MemoryHeader& header) : lock_(header.lock) {
    const auto self = static_cast<std::uint32_t>(getpid());
    std::uint32_t holder = 0;
    for (int tries = 1; !lock_.compare_exchange_strong(holder, self); ++tries) {
      // The holder is another thread of this process.
      const bool stale =
          holder != 0 && holder != self && tries % kLockLooks == 0 && has_ended(holder);
      if (stale && lock_.compare_exchange_strong(holder, self)) return;
      sched_yield();
      holder = 0;
    }
  }
  ~HeaderLock() { lock_.store(0, std::memory_order_release); }
  HeaderLock(const HeaderLock&) = delete;
  HeaderLock& operator=(const HeaderLock&) = delete;

 private:
  std::atomic<std::uint32_t>& lock_;
};

std::int64_t first_offset() {
  return whole_segments(static_cast<std::int64_t>(sizeof(MemoryHeader)));
}

}  // namespace

base::Result<std::shared_ptr<JobMemory>> JobMemory::map(base::Descriptor file,
                                                        std::uint64_t bytes) {
  void* base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (base == MAP_FAILED) {
    return Error{Code::resources,
                 fmt::format("the job's memory file could not be mapped: {} bytes of address space "
                             "(UNISONO_SHARED_LIMIT): {}. Raise the limit on address space "
                             "(RLIMIT_AS, `ulimit -v`) or set UNISONO_SHARED_LIMIT lower",
                             bytes, std::strerror(errno))};
  }
  // A core dump does not need the job's buffers.
  madvise(base, bytes, MADV_DONTDUMP);
  auto memory = std::shared_ptr<JobMemory>(new JobMemory(
      std::move(file), static_cast<std::byte*>(base), static_cast<std::int64_t>(bytes)));
  UNISONO_TRY(memory->commit(0, first_offset(), "the job's header"));
  return memory;
}

JobMemory::JobMemory(base::Descriptor file, std::byte* base, std::int64_t bytes)
    : file_(std::move(file)), base_(base), bytes_(bytes) {}

JobMemory::~JobMemory() { munmap(base_, static_cast<std::size_t>(bytes_)); }

base::Result<std::int64_t> JobMemory::allocate(std::int64_t bytes) {
  bytes = whole_segments(bytes);
  if (refuses_ && refuses_("a segment")) {
    return Error{Code::resources,
                 fmt::format("the job's memory file has no room for {} more bytes: refused by a "
                             "test",
                             bytes)};
  }
  const HeaderLock lock(header());
  MemoryHeader& state = header();
  for (std::uint32_t i = 0; i < state.free_count; ++i) {
    auto& free = state.free[i];
    if (free.bytes < bytes) continue;
    // Takes the end of the free segment: a single store completes it, even if the process dies
    // next.
    free.bytes -= bytes;
    const std::int64_t offset = free.offset + free.bytes;
    if (free.bytes == 0) free = state.free[--state.free_count];
    return offset;
  }
  if (state.used_end == 0) state.used_end = first_offset();
  const std::int64_t limit = state.limit == 0 ? bytes_ : state.limit;
  if (state.used_end + bytes > limit) {
    return Error{Code::resources,
                 fmt::format("the job's memory file has no room for {} more bytes: {} of {} are in "
                             "use; free communicators or raise UNISONO_SHARED_LIMIT",
                             bytes, state.used_end, limit)};
  }
  const std::int64_t offset = state.used_end;
  state.used_end += bytes;
  return offset;
}

void JobMemory::release(std::int64_t offset, std::int64_t bytes) {
  bytes = whole_segments(bytes);
  empty(offset, bytes);
  const HeaderLock lock(header());
  MemoryHeader& state = header();
  for (std::uint32_t i = 0; i < state.free_count; ++i) {
    auto& free = state.free[i];
    if (free.offset + free.bytes == offset) {
      free.bytes += bytes;
      return;
    }
    if (offset + bytes == free.offset) {
      const std::int64_t whole = free.bytes + bytes;
      free.bytes = 0;
      free.offset = offset;
      free.bytes = whole;
      return;
    }
  }
  // A full list loses address space of the file, not memory: its pages are gone already.
  if (state.free_count == kMostFreeSegments) return;
  state.free[state.free_count] = {offset, bytes};
  ++state.free_count;
}

void JobMemory::empty(std::int64_t offset, std::int64_t bytes) {
  fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, whole_segments(bytes));
}

void JobMemory::confine(int part, int parts) {
  const HeaderLock lock(header());
  MemoryHeader& state = header();
  const std::int64_t share = (bytes_ - state.used_end) / parts / kSegmentAlignment;
  state.used_end += part * share * kSegmentAlignment;
  state.limit = state.used_end + share * kSegmentAlignment;
}

base::Status JobMemory::commit(std::int64_t offset, std::int64_t bytes, const char* purpose) {
  if (refuses_ && refuses_(purpose)) {
    return Error{Code::resources,
                 fmt::format("no memory for {}: {} bytes of shared memory: refused by a test",
                             purpose, bytes)};
  }
  int refused = 0;
  {
    // Before Linux 6.10 a signal makes the kernel undo the whole reservation. A program with a
    // timer faster than the reservation, such as a profiler's, would retry for ever.
    const base::NoSignals whole;
    do {
      refused = fallocate(file_.get(), 0, offset, bytes) == 0 ? 0 : errno;
    } while (refused == EINTR);
  }
  if (refused != 0) {
    return Error{Code::resources,
                 fmt::format("no memory for {}: {} bytes of shared memory: {}; the limit is the "
                             "machine's free memory or the control group's memory.max",
                             purpose, bytes, std::strerror(refused))};
  }
  // Page tables too, so that the first operation does not pay for them.
  madvise(base_ + offset, static_cast<std::size_t>(bytes), MADV_POPULATE_WRITE);
  return base::success();
}

}  // namespace unisono::memory
