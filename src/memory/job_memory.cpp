// SPDX-License-Identifier: BSD-3-Clause
#include "memory/job_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/log.hpp"
#include "base/process_record.hpp"
#include "base/text.hpp"
#include "base/thread_signals.hpp"

namespace unisono::memory {
namespace {

using base::Code;
using base::Error;

std::int64_t whole_segments(std::int64_t bytes) {
  return (bytes + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
}

// A waiting process yields so often before it looks at the lock's holder. Then it sleeps before
// each further look, so that giving up takes at least a second in which it runs. A job that is
// stopped and continued as a whole loses none of that.
constexpr int kYields = 1000;
constexpr int kMostLooks = 1000;
constexpr auto kSleepAfterLook = std::chrono::milliseconds(1);

std::uint64_t mark_of(pid_t pid, const base::ProcessRecord& record) {
  const auto start = static_cast<std::uint64_t>(base::parse_integer(record.start_time).value_or(0));
  return static_cast<std::uint64_t>(pid) << 32 | (start & 0xffff'ffffU);
}

pid_t process_of(std::uint64_t mark) { return static_cast<pid_t>(mark >> 32); }

// Without /proc a process counts as the one of the mark if its number is in use.
bool has_ended(std::uint64_t mark) {
  const pid_t pid = process_of(mark);
  const auto record = base::read_process(pid);
  if (!record) return kill(pid, 0) != 0 && errno == ESRCH;
  return record->state == 'Z' || record->state == 'X' || mark_of(pid, *record) != mark;
}

// A process holds the lock for a few dozen instructions and may be killed or stopped at any of
// them. A dead one's lock is taken over: changes under it are ordered such that an interrupted one
// can only lose free room. A stopped one may go on at any time, so its lock is not to be had.
class HeaderLock {
 public:
  HeaderLock(MemoryHeader& header, std::uint64_t own_mark) : lock_(header.lock) {
    for (int yields = 0; yields < kYields; ++yields) {
      if (take(own_mark)) return;
      sched_yield();
    }
    for (int looks = 0; looks < kMostLooks; ++looks) {
      // With the own mark it is another thread of this process.
      const bool is_left = holder_ != own_mark && has_ended(holder_);
      if (is_left && take(own_mark, holder_)) return;
      std::this_thread::sleep_for(kSleepAfterLook);
      if (take(own_mark)) return;
    }
  }
  ~HeaderLock() {
    if (is_held_) lock_.store(0, std::memory_order_release);
  }
  HeaderLock(const HeaderLock&) = delete;
  HeaderLock& operator=(const HeaderLock&) = delete;

  bool is_held() const { return is_held_; }
  Error why_not() const {
    return {
        Code::resources,
        fmt::format("process {} holds the lock of the job's memory table and does not go on; is "
                    "it stopped? Continue it (SIGCONT) or end it",
                    process_of(holder_))};
  }

 private:
  bool take(std::uint64_t own_mark, std::uint64_t from = 0) {
    holder_ = from;
    return is_held_ = lock_.compare_exchange_strong(holder_, own_mark);
  }

  std::atomic<std::uint64_t>& lock_;
  bool is_held_ = false;
  std::uint64_t holder_ = 0;
};

std::int64_t first_offset() {
  return whole_segments(static_cast<std::int64_t>(sizeof(MemoryHeader)));
}

}  // namespace

std::uint64_t process_mark() {
  const auto own = base::read_process(getpid());
  return mark_of(getpid(), own.value_or(base::ProcessRecord{}));
}

base::Result<std::shared_ptr<JobMemory>> JobMemory::map(base::Descriptor&& file,
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

std::uint64_t JobMemory::header_bytes() { return static_cast<std::uint64_t>(first_offset()); }

JobMemory::JobMemory(base::Descriptor file, std::byte* base, std::int64_t bytes)
    : file_(std::move(file)), base_(base), bytes_(bytes), mark_(process_mark()) {}

JobMemory::~JobMemory() { munmap(base_, static_cast<std::size_t>(bytes_)); }

base::Result<std::int64_t> JobMemory::allocate(std::int64_t bytes) {
  base::Result<std::int64_t> offset = allocate_new(bytes);
  if (!offset && release_kept()) offset = allocate_new(bytes);
  return offset;
}

base::Result<std::int64_t> JobMemory::allocate_new(std::int64_t asked) {
  const std::int64_t bytes = whole_segments(std::min(asked, bytes_));  // a sum cannot wrap
  if (refuses_ && refuses_("a segment")) {
    return Error{Code::resources,
                 fmt::format("the job's memory file has no room for {} more bytes: refused by a "
                             "test",
                             asked)};
  }
  const HeaderLock lock(header(), mark_);
  if (!lock.is_held()) return lock.why_not();
  if (asked > bytes_) return no_room(asked);
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
  if (state.used_end + bytes > limit) return no_room(bytes);
  const std::int64_t offset = state.used_end;
  state.used_end += bytes;
  return offset;
}

// The user knows the setting only, so the message derives a host's part from it.
Error JobMemory::no_room(std::int64_t bytes) const {
  const MemoryHeader& state = header();
  const std::string what =
      fmt::format("the job's memory file has no room for {} more bytes", bytes);
  if (state.limit == 0) {
    return {Code::resources,
            fmt::format("{}: {} of the {} bytes of UNISONO_SHARED_LIMIT are in use; free "
                        "communicators or raise it",
                        what, state.used_end, bytes_)};
  }
  return {Code::resources,
          fmt::format("{}: {} of this host's {} bytes are in use. UNISONO_SHARED_LIMIT is {} bytes "
                      "and divided by {} hosts; free communicators or raise it",
                      what, state.used_end - state.part_begin, state.limit - state.part_begin,
                      bytes_, state.parts)};
}

std::int64_t JobMemory::room() const {
  const HeaderLock lock(header(), mark_);
  if (!lock.is_held()) return 0;
  const MemoryHeader& state = header();
  return (state.limit == 0 ? bytes_ : state.limit) - std::max(state.used_end, first_offset());
}

void JobMemory::release(std::int64_t offset, std::int64_t bytes) {
  bytes = whole_segments(bytes);
  empty(offset, bytes);
  const HeaderLock lock(header(), mark_);
  if (!lock.is_held()) {
    base::log(base::LogLevel::warn, "memory", "{} bytes of the job's file are lost: {}", bytes,
              lock.why_not().message);
    return;
  }
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

void JobMemory::keep(std::int64_t offset, std::int64_t bytes, std::int64_t kind) {
  bytes = whole_segments(bytes);
  MemoryHeader::Kept oldest{offset, bytes, kind};
  {
    const HeaderLock lock(header(), mark_);
    auto& kept = header().kept;
    if (lock.is_held()) {
      oldest = kept[0];
      // From the end of the list on, so a process that dies here loses the room of one segment.
      for (int i = 0; i + 1 < kMostKeptSegments; ++i) kept[i] = kept[i + 1];
      kept[kMostKeptSegments - 1] = {offset, bytes, kind};
    }
  }
  if (oldest.offset != 0) release(oldest.offset, oldest.bytes);
}

std::optional<std::int64_t> JobMemory::reuse(std::int64_t bytes, std::int64_t kind) {
  bytes = whole_segments(bytes);
  const HeaderLock lock(header(), mark_);
  if (!lock.is_held()) return std::nullopt;
  for (auto& kept : header().kept) {
    if (kept.offset == 0 || kept.bytes != bytes || kept.kind != kind) continue;
    const std::int64_t offset = kept.offset;
    kept.offset = 0;
    return offset;
  }
  return std::nullopt;
}

// For a request that finds no memory. False: there were none.
bool JobMemory::release_kept() {
  bool found = false;
  for (auto& slot : header().kept) {
    MemoryHeader::Kept kept{};
    {
      const HeaderLock lock(header(), mark_);
      if (!lock.is_held()) return found;
      kept = slot;
      slot.offset = 0;
    }
    if (kept.offset == 0) continue;
    release(kept.offset, kept.bytes);
    found = true;
  }
  return found;
}

void JobMemory::empty(std::int64_t offset, std::int64_t bytes) {
  clear(offset, whole_segments(bytes));
}

void JobMemory::clear(std::int64_t offset, std::int64_t bytes) {
  fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
}

base::Status JobMemory::confine(int part, int parts) {
  const HeaderLock lock(header(), mark_);
  if (!lock.is_held()) return lock.why_not();
  MemoryHeader& state = header();
  const std::int64_t share = (bytes_ - state.used_end) / parts / kSegmentAlignment;
  state.used_end += part * share * kSegmentAlignment;
  state.part_begin = state.used_end;
  state.parts = parts;
  state.limit = state.used_end + share * kSegmentAlignment;
  return base::success();
}

base::Status JobMemory::commit(std::int64_t offset, std::int64_t bytes, const char* purpose) {
  UNISONO_TRY(commit_pages(offset, bytes, purpose));
  map_pages(offset, bytes);
  return base::success();
}

base::Status JobMemory::commit_pages(std::int64_t offset, std::int64_t bytes, const char* purpose) {
  if (refuses_ && refuses_(purpose)) {
    return Error{Code::resources,
                 fmt::format("no memory for {}: {} bytes of shared memory: refused by a test",
                             purpose, bytes)};
  }
  int refused = reserve_pages(offset, bytes);
  if (refused != 0 && release_kept()) refused = reserve_pages(offset, bytes);
  if (refused != 0) {
    return Error{Code::resources,
                 fmt::format("no memory for {}: {} bytes of shared memory: {}; the limit is the "
                             "machine's free memory or the control group's memory.max",
                             purpose, bytes, std::strerror(refused))};
  }
  return base::success();
}

// madvise() takes whole pages.
void JobMemory::map_pages(std::int64_t offset, std::int64_t bytes) {
  const std::int64_t first = offset - offset % sysconf(_SC_PAGESIZE);
  madvise(base_ + first, static_cast<std::size_t>(offset + bytes - first), MADV_POPULATE_WRITE);
}

// An error number.
int JobMemory::reserve_pages(std::int64_t offset, std::int64_t bytes) {
  int refused = 0;
  // Before Linux 6.10 a signal makes the kernel undo the whole reservation. A program with a timer
  // faster than the reservation, such as a profiler's, would retry for ever.
  const base::NoSignals whole;
  do {
    refused = fallocate(file_.get(), 0, offset, bytes) == 0 ? 0 : errno;
  } while (refused == EINTR);
  return refused;
}

}  // namespace unisono::memory
