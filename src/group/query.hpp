// SPDX-License-Identifier: BSD-3-Clause
// Query: whether something holds for the word that every member of a communicator has published.
// The members take no part: a word is read from the host's memory, or sent by its rank's agent. It
// is the global comparison of the ASCI Q's network (Petrini et al., HotI'03, table 1: heartbeats,
// fault detection), where the worst of all answers wins (section 4.1): here a member that is gone
// comes before one whose word does not compare. Structs in shared memory; zero is their initial
// state.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace unisono::group {

// In the order of the C API.
enum class Comparison : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal };
inline constexpr int kComparisonCount = 6;

constexpr bool compare(std::uint64_t word, Comparison how, std::uint64_t value) {
  switch (how) {
    case Comparison::equal:
      return word == value;
    case Comparison::not_equal:
      return word != value;
    case Comparison::less:
      return word < value;
    case Comparison::less_equal:
      return word <= value;
    case Comparison::greater:
      return word > value;
    case Comparison::greater_equal:
      return word >= value;
  }
  return false;
}

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

// What a rank has asked for. A member is asked once at a time, for answers may overtake each other;
// one that was asked by a query that failed is asked again when that answer is there.
struct Query {
  struct Member {
    std::uint64_t asked = 0;   // the number of the last request
    std::uint64_t needed = 0;  // of the one that this query goes by
  };
  std::vector<Member> members;  // of other hosts; by place in Communicator::remote_
};

}  // namespace unisono::group
