// SPDX-License-Identifier: BSD-3-Clause
// NicPeers: how far the neighbours of a rank are in the NIC path. Each rank publishes a progress
// word (NicProgress) in its host's memory. A rank that waits long reads those of its host, and asks
// the leaders of neighbouring hosts for theirs. One thread at a time; the network's threads read
// and write the memory under its mutex.
#pragma once

#include <optional>

#include "comm/members.hpp"
#include "comm/nic/nic_path.hpp"
#include "comm/segment.hpp"

namespace unisono::comm {

class NicPeers {
 public:
  // These outlive it.
  NicPeers(const Members& members, const Segment& segment, NicPath& path)
      : members_(members), segment_(segment), path_(path) {}

  void publish(const NicProgress& own);
  // This rank leaves the path: tells all members how many operations it has completed.
  void publish_leave_record();

  // The neighbour's leave record, or else its word in this host's memory, or its last answer.
  // nullopt: there is none, or its answer is still under way.
  std::optional<NicProgress> of(const NicPath::Neighbour& next) const;
  std::optional<NicProgress> leave_record_of(int rank) const;
  bool awaits_answer(const NicPath::Neighbour& next) const;
  // Asks a neighbour on another host, one request at a time.
  void ask(NicPath::Neighbour& next);

 private:
  MemberRecord& record(int rank) const { return segment_.records()[rank]; }

  const Members& members_;
  const Segment& segment_;
  NicPath& path_;
};

}  // namespace unisono::comm
