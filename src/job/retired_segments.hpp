// SPDX-License-Identifier: BSD-3-Clause
// RetiredSegments: segments of communicators of several hosts that have ended, at the leader that
// has reserved them. A segment is reused when the leave records of all members are there. A newer
// communicator there begins beyond the operations of the older one, so late words of that one count
// as old. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "job/ranks.hpp"
#include "job/tables.hpp"
#include "memory/job_memory.hpp"

namespace unisono::job {

// A member's leave record. failed: the segment is not to be reused.
enum class LeaveRecord : std::uint64_t { none, clean, failed };

class RetiredSegments {
 public:
  // The references outlive it.
  RetiredSegments(JobHeader& header, const Ranks& ranks, memory::JobMemory& memory)
      : header_(header), ranks_(ranks), memory_(memory) {}

  struct Retired {
    std::int64_t offset = 0, bytes = 0;
    const std::atomic<std::uint64_t>* leave_records = nullptr;  // by member: `LeaveRecord`
    std::vector<int> members{};                                 // ranks of the job
  };
  void add(const Retired& segment, std::uint64_t next_sequence);
  // Operations up to there were in memory that communicators may use again.
  void raise_least_sequence(std::uint64_t next_sequence);
  // Gives back those that nobody uses any more. Whether none is left.
  bool reclaim();
  // The least sequence number with which a newer communicator may begin.
  std::uint64_t least_sequence() const {
    return header_.least_sequence.load(std::memory_order_relaxed);
  }

 private:
  bool reclaim_one(const Retired& segment);

  JobHeader& header_;
  const Ranks& ranks_;
  memory::JobMemory& memory_;
  std::mutex mutex_;
  std::vector<Retired> retired_;
};

}  // namespace unisono::job
