// SPDX-License-Identifier: BSD-3-Clause
// What each member of a communicator shows to the others, in shared memory. Zero is the initial
// state. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace unisono::comm {

// Of a member.
struct alignas(64) MemberRecord {
  std::atomic<std::uint64_t> published;  // by its rank only
  std::atomic<std::uint32_t> ended;      // 1: counted in CommunicatorHeader::freed
  std::atomic<std::uint64_t> consent;    // while the communicator shrinks (consent.hpp)
  // Where there is a NIC path (nic_path.hpp). A newer communicator may lie where an older one has
  // been, to which something still comes: the last three bear the communicator's mark.
  std::atomic<std::uint64_t> standing;      // a NicStanding; by its rank only
  std::atomic<std::uint64_t> farewell;      // a NicFarewell; it comes when the rank leaves the path
  std::atomic<std::uint64_t> heard;         // what its rank has answered, ...
  std::atomic<std::uint64_t> heard_number;  // ... and to which request
};

// What a member of another host has sent on request; by asking rank and member.
struct QueryAnswer {
  std::atomic<std::uint64_t> value;
  std::atomic<std::uint64_t> number;  // of the request
};

}  // namespace unisono::comm
