// SPDX-License-Identifier: BSD-3-Clause
// MulticastResults: what has become of this rank's multicasts to the other hosts, by operation.
// The combined acknowledgement of all hosts is one result for each (reliable/group): all have it,
// or it has failed, because a host was lost before it was known to have it. The sender's call does
// not wait for the result; a later one tells of a failure (decision 57). One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/members.hpp"

namespace unisono::comm {

class MulticastResults {
 public:
  // `members` outlive it. They are on several hosts if it is used.
  explicit MulticastResults(const Members& members) : members_(members) {}

  // All steps of operation `index` are done.
  void note_sent(std::uint64_t index, std::uint64_t first_packet);
  // The first operation that a lost host may lack.
  std::optional<std::uint64_t> first_failed();
  // The number of the next packet, at the time of first_failed().
  std::uint64_t next_packet() const { return next_packet_; }

 private:
  struct Sent {
    std::uint64_t index;
    std::uint64_t first, last;  // packets
  };

  const Members& members_;
  std::vector<Sent> sent_;  // without a result so far
  std::uint64_t next_packet_ = 1;
  std::uint64_t known_failures_ = 0;  // of packets of this rank
  std::optional<std::uint64_t> first_failed_;
};

}  // namespace unisono::comm
