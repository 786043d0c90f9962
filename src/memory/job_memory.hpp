// SPDX-License-Identifier: BSD-3-Clause
// JobMemory: the job's memory file, mapped once per process, and the allocator of its segments.
// Committing a segment allocates its pages, and releasing it frees them. So a rank touches only
// pages that were promised to it, and the size of /dev/shm does not matter. The allocator's state
// lies in the file; any rank may allocate. Control path; any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace unisono::memory {

inline constexpr std::int64_t kSegmentAlignment = 64 * 1024;
inline constexpr int kMostFreeSegments = 1024;
inline constexpr int kMostKeptSegments = 4;

// Names this process by its number and the time of its start: a process that ended, and whose
// number another one has got, differs. Never 0.
std::uint64_t process_mark();

// At the start of the file; zero is its initial state.
struct MemoryHeader {
  std::atomic<std::uint64_t> lock;  // the process that holds it, as process_mark(); 0: none
  std::uint32_t free_count;
  std::int64_t used_end;    // segments from here on were never used; 0: none yet
  std::int64_t limit;       // end of the part that this host allocates from; 0: none
  std::int64_t part_begin;  // of that part
  std::int64_t parts;       // the number of such parts
  struct Free {
    std::int64_t offset, bytes;
  } free[kMostFreeSegments];
  // Segments that were given back with their pages, oldest first.
  struct Kept {
    std::int64_t offset, bytes, kind;  // offset 0: none
  } kept[kMostKeptSegments];
};

class JobMemory : public std::enable_shared_from_this<JobMemory> {
 public:
  // Maps the file, and takes it if it succeeds. The error, Code::resources, names the limit if the
  // address space does not suffice.
  static base::Result<std::shared_ptr<JobMemory>> map(base::Descriptor&& file, std::uint64_t bytes);
  // The bytes at the beginning of the file that come before all segments.
  static std::uint64_t header_bytes();
  ~JobMemory();
  JobMemory(const JobMemory&) = delete;
  JobMemory& operator=(const JobMemory&) = delete;

  std::byte* at(std::int64_t offset) const { return base_ + offset; }
  std::int64_t bytes() const { return bytes_; }  // of the file
  std::int64_t room() const;                     // that was never allocated, of this host's part
  MemoryHeader& header() const { return *reinterpret_cast<MemoryHeader*>(base_); }

  // A zeroed segment for the caller alone; commit it before use. The error names a process that
  // keeps the allocator's lock, as one that was stopped while it held it.
  base::Result<std::int64_t> allocate(std::int64_t bytes);
  // Gives the segment back; no process may use it any more. Where the allocator's lock is not to be
  // had, its pages are free, and its room in the file is lost.
  void release(std::int64_t offset, std::int64_t bytes);
  // As release(), but a few segments keep their pages, and reuse() gives them out again. To get and
  // to clear pages costs far more than a communicator's other parts. `kind` is the caller's.
  void keep(std::int64_t offset, std::int64_t bytes, std::int64_t kind);
  // A kept segment of this size and kind, as it was given back; nullopt: there is none.
  std::optional<std::int64_t> reuse(std::int64_t bytes, std::int64_t kind);
  // Gives the pages of a segment back, but keeps the segment: for one that other hosts have as
  // well.
  void empty(std::int64_t offset, std::int64_t bytes);
  // The same for a part of a segment, in whole pages. It then reads as zero.
  void clear(std::int64_t offset, std::int64_t bytes);
  // Restricts allocation to the `part`-th of `parts` equal parts of the unused rest. The first rank
  // of each host calls it when all hosts have allocated the same segments.
  base::Status confine(int part, int parts);
  // Makes the range real memory: after it, no access to the range can fail for lack of memory.
  // `purpose` names it in the error.
  base::Status commit(std::int64_t offset, std::int64_t bytes, const char* purpose);
  // The same without this process's page tables: the first access to each page takes a fault.
  base::Status commit_pages(std::int64_t offset, std::int64_t bytes, const char* purpose);

  // For tests. Called at each allocate() and commit() of this object with the purpose; if it
  // returns true, the request fails. Set it before other threads use the object.
  using Refuses = std::function<bool(const char* purpose)>;
  void refuse_where(Refuses refuses) { refuses_ = std::move(refuses); }

 private:
  JobMemory(base::Descriptor file, std::byte* base, std::int64_t bytes);
  base::Result<std::int64_t> allocate_new(std::int64_t asked);
  base::Error no_room(std::int64_t bytes) const;  // under the lock
  bool release_kept();
  int reserve_pages(std::int64_t offset, std::int64_t bytes);
  void map_pages(std::int64_t offset, std::int64_t bytes);

  base::Descriptor file_;
  std::byte* base_;
  std::int64_t bytes_;
  std::uint64_t mark_;  // of the process that maps it
  Refuses refuses_;
};

}  // namespace unisono::memory
