// SPDX-License-Identifier: BSD-3-Clause
// Reservations: the segments that members on this host have reserved, or have real memory in, for
// communicators that are being made. They are noted in the old communicator's memory. So if a rank
// dies before its segment has an owner, the others give it back. One thread at a time.
#pragma once

#include <cstdint>

#include "comm/members.hpp"
#include "comm/segment.hpp"

namespace unisono::comm {

class Reservations {
 public:
  // The number of a shrink's reservations. A derivation has its own, which is lower and not 0.
  static constexpr std::uint64_t kOfShrink = UINT64_MAX;

  // Those outlive it.
  Reservations(const Members& members, const Segment& segment)
      : members_(members), segment_(segment) {}

  // This rank's, to be noted in.
  Reservation& own() const { return segment_.records()[members_.rank()].reservation; }
  // A communicator owns this rank's segment.
  void hand_over() const { own().offset.store(0, std::memory_order_relaxed); }
  // No process uses this rank's segment.
  void release_own() const { take(own(), Use::by_nobody); }
  // The same, but ranks of other hosts may write to it.
  void empty_own() const { take(own(), Use::by_other_hosts); }

  // That derivation has made nothing for this rank.
  void give_up(std::uint64_t number) const;
  // Gives back what derivations have left that failed for all members of this host that live. On
  // several hosts, only the pages: others may own a communicator there that has failed.
  void give_back_failed() const;
  // Gives back the segments of dead members for a shrink that has decided on another one.
  void give_back_unused(std::int64_t decided_offset) const;

 private:
  enum class Use : std::uint8_t { by_nobody, by_other_hosts };
  void take(Reservation& reservation, Use use) const;
  bool have_all_given_up(std::uint64_t number) const;

  const Members& members_;
  const Segment& segment_;
};

}  // namespace unisono::comm
