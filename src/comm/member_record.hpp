// SPDX-License-Identifier: BSD-3-Clause
// The record of each member of a communicator for the others, in shared memory. Zero is the initial
// state. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace unisono::comm {

// A segment that a rank has reserved, or has real memory in, for a communicator that is not made
// yet. The rank that takes the offset out gives the memory back (reservations.hpp).
struct Reservation {
  std::atomic<std::int64_t> offset;   // 0: none
  std::atomic<std::int64_t> bytes;    // there when the offset is
  std::atomic<std::uint64_t> number;  // likewise: what it is for

  void note(std::int64_t at, std::int64_t size, std::uint64_t purpose) {
    bytes.store(size, std::memory_order_relaxed);
    number.store(purpose, std::memory_order_relaxed);
    offset.store(at, std::memory_order_release);
  }
};

// The record of one member.
struct alignas(64) MemberRecord {
  std::atomic<std::uint64_t> published;  // written by its rank only
  std::atomic<std::uint32_t> ended;      // 1: counted in CommunicatorHeader::freed
  std::atomic<std::uint64_t> consent;    // while the communicator shrinks (consent.hpp)
  Reservation reservation;
  std::atomic<std::uint64_t> given_up;  // the last making of a communicator that failed at its rank
  // Used with a NIC path (nic_path.hpp). A newer communicator may use the memory of an older one to
  // which a word is still under way. So the last three carry the communicator's mark.
  std::atomic<std::uint64_t> nic_progress;  // a NicProgress; by its rank only
  std::atomic<std::uint64_t>
      leave_record;                  // nic_leave_record(); arrives when the rank leaves the path
  std::atomic<std::uint64_t> heard;  // the last answer of its rank, ...
  std::atomic<std::uint64_t> heard_number;  // ... and to which request
};

// The answer of a member of another host; by asking rank and member.
struct QueryAnswer {
  std::atomic<std::uint64_t> value;
  std::atomic<std::uint64_t> number;  // number of the request
};

}  // namespace unisono::comm
