// SPDX-License-Identifier: BSD-3-Clause
// RemoteCalls: the calls of the other members. Every rank keeps, in its host's memory, a digest of
// all its calls so far for each of its last calls. Members of one host compare theirs in memory: a
// call record (size_queue.hpp) is missing while its call waits for room, and is written over soon.
// A rank asks a member on another host for all of them when it has waited for that one for long:
// messages of calls that differ may go to different slots and never meet. It also asks when it has
// met a message of another call, which may be any rank's. The asked rank takes no part. One thread
// at a time; the network's threads access the memory under its mutex.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/size_queue.hpp"

namespace unisono::network {
class Network;
}

namespace unisono::comm {

class RemoteCalls {
 public:
  // The number of kept calls of each rank. Both size classes together have this many slot indices,
  // so no rank can be further ahead of one that waits.
  static constexpr std::size_t kKept = 128;
  static std::int64_t memory_bytes(int ranks) {
    return std::int64_t{ranks} * static_cast<std::int64_t>(sizeof(Row));
  }

  // `memory` is the start of the job's, `table` an offset there. `mark`: unlike that of older
  // communicators in the same place.
  RemoteCalls(std::byte* memory, std::int64_t table, int rank, std::uint64_t mark)
      : memory_(memory), table_(table), rank_(rank), mark_(mark), own_(&row(rank).calls) {}

  // A call of this rank, whose record (size_queue.hpp) is there, or waits for room. Between hosts,
  // under the network's mutex.
  void note(std::uint64_t index, std::uint32_t history) {
    std::atomic_ref((*own_)[index % kKept])
        .store(engine::make_tag(index, history), std::memory_order_release);
  }
  // Asks for the calls of a member. No other request may be open.
  void ask(network::Network& network, int member, int job_rank);
  // The member that was asked last; -1: none.
  int asked() const { return asked_; }
  bool is_answered() const;
  // The first differing call of those that both have, or one before it: by the last answer, or with
  // a member on this host.
  std::optional<std::uint64_t> find_difference() const;
  std::optional<std::uint64_t> find_difference_with(int member) const;

 private:
  using Words = std::array<std::uint64_t, kKept>;  // index and digest, by index modulo kKept
  struct alignas(64) Row {
    Words calls;           // of the rank, in its own host's memory
    Words answer;          // the received calls of another rank
    std::uint64_t number;  // number of the request of the present answer
  };

  std::optional<std::uint64_t> find_difference_with(Words& theirs) const;

  Row& row(int rank) const { return reinterpret_cast<Row*>(memory_ + table_)[rank]; }

  std::byte* memory_;
  std::int64_t table_;
  int rank_;
  std::uint64_t mark_;
  Words* own_;
  int asked_ = -1;
  std::uint64_t requests_ = 0;
};

}  // namespace unisono::comm
