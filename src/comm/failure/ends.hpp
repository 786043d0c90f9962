// SPDX-License-Identifier: BSD-3-Clause
// Ends: the living members that have ended a communicator, and from which call on, so that no rank
// waits for them. It is in the communicator's shared memory, on every host. A newer communicator
// may use the memory of an older one to which a word is still under way. So the words carry a mark.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "network/network.hpp"

namespace unisono::comm {

class Ends {
 public:
  struct End {
    std::uint64_t index = 0;  // of the first operation without this rank
    bool has_failed = false;  // it has reported the reason, or knows it from another
    bool has_shrunk = false;  // or begun to
  };
  static std::int64_t memory_bytes(int ranks) {
    return std::int64_t{ranks} * static_cast<std::int64_t>(sizeof(Row));
  }

  // `mark`: not 0, and unlike that of older communicators in the same place.
  Ends(std::byte* table, std::uint64_t mark) : rows_(reinterpret_cast<Row*>(table)), mark_(mark) {}

  // This rank's, to its host and through the `targets` to theirs: one rank of each, so that the
  // words are written once.
  void tell(int rank, const End& end, std::span<const int> targets, network::Network* network);
  std::optional<End> of(int rank) const;

 private:
  struct Row {
    std::atomic<std::uint64_t> what;  // there when the mark is
    std::atomic<std::uint64_t> mark;
  };

  Row* rows_;
  std::uint64_t mark_;
};

}  // namespace unisono::comm
