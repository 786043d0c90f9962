// SPDX-License-Identifier: BSD-3-Clause
// RemoteCalls: the calls of the other members. Every rank keeps, in its host's memory, a digest of
// all its calls so far for each of its last calls. Members of one host compare theirs in memory: a
// call record (size_queue.hpp) is missing while its call waits for room, and is written over soon.
// A rank asks a member on another host for all of them when it has waited for that one for long:
// messages of calls that differ may go to different slots and never meet. It also asks when it has
// met a message of another call, which may be any rank's. The asked rank takes no part. One thread
// at a time; the network's threads access the memory under its mutex.
#pragma once

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
  // The number of kept calls of each rank, a power of two. The slot indexes of all queues together
  // are fewer than 128, and no rank is further ahead of another than kFarTurns times as many calls.
  static constexpr std::uint64_t kKept = engine::kFarTurns * 128;
  static std::int64_t memory_bytes(int ranks) { return ranks * kRowBytes; }

  // `memory` is the start of the job's, `table` an offset there. `mark`: unlike that of older
  // communicators in the same place.
  struct Table {
    std::byte* memory;
    std::int64_t offset;
  };
  RemoteCalls(const Table& table, int rank, std::uint64_t mark)
      : table_(table), rank_(rank), mark_(mark), own_(calls_of(rank)) {}

  // A call of this rank, whose record (size_queue.hpp) is there, or waits for room. Between hosts,
  // under the network's mutex.
  void note(std::uint64_t index, std::uint32_t history) {
    last_ = index;
    std::atomic_ref(own_[index % kKept]).store(word(index, history), std::memory_order_release);
  }
  // The digest after a call of this rank; 0: it is no longer kept.
  std::uint32_t history_of(std::uint64_t index) const {
    const std::uint32_t kept = own_[index % kKept];
    return kept == word(index, kept) ? kept & static_cast<std::uint32_t>(plan::kDigestMask) : 0;
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
  // A word has the digest in its lower bits. The others are those of the index beyond the position:
  // they tell calls at one position apart. 0: none, since a digest is not.
  static constexpr std::int64_t kRowBytes =
      2 * kKept * static_cast<std::int64_t>(sizeof(std::uint32_t)) + plan::kLineBytes;
  std::uint32_t word(std::uint64_t index, std::uint32_t history) const {
    const std::uint64_t turn = index / kKept;
    return static_cast<std::uint32_t>(turn << plan::kDigestBits) |
           (history & static_cast<std::uint32_t>(plan::kDigestMask));
  }
  std::optional<std::uint64_t> find_difference_with(std::uint32_t* theirs) const;

  // A row has the calls of the rank, in its own host's memory, and the received calls of another
  // one. Behind them is the number of the request of that answer.
  std::uint32_t* calls_of(int rank) const {
    return reinterpret_cast<std::uint32_t*>(table_.memory + table_.offset + rank * kRowBytes);
  }
  std::uint32_t* answer() const { return own_ + kKept; }
  std::uint64_t* number() const { return reinterpret_cast<std::uint64_t*>(own_ + 2 * kKept); }

  Table table_;
  int rank_;
  std::uint64_t mark_;
  std::uint32_t* own_;
  std::uint64_t last_ = 0;  // index
  int asked_ = -1;
  std::uint64_t requests_ = 0;
};

}  // namespace unisono::comm
