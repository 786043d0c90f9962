// SPDX-License-Identifier: BSD-3-Clause
// Binds a schedule with local counts (gatherv, scatterv, alltoallv). Others' buffers cannot be laid
// out from their schedules, so all have the same layout: slot s has line s and an equal share of
// the data area. Longer messages are advertised: some from staging in job memory, which two copies
// of the processor read and write faster than one of the kernel. The others from the caller's
// memory if it may be pulled and stays unchanged, else from staging, too. A receiver on another
// host gets them from there through its own share. Every message has its length beside its flag.
//
// The sender waits until its receivers have read what they need from its memory or from staging.
// If all of it is staged and short, it does not: then staging lasts until all members have
// completed the operation.
// Control path; pure; any thread.
#pragma once

#include <limits>

#include "plan/bind/bind.hpp"
#include "plan/program.hpp"
#include "schedule/schedule.hpp"

namespace unisono::plan {

struct LocalOptions {
  std::int64_t element_bytes = 1;
  BufferLayout input, output;  // each block in one piece
  ReceiveGeometry geometry;    // at least 2 lines a rank
  // Blocks of equal shares use at most so much of a receive buffer's data.
  std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();
  // Short blocks of ranks on several hosts at most so much, if long ones have longer shares then.
  std::int64_t most_of_short = std::numeric_limits<std::int64_t>::max();
  bool pull = false;               // ranks can read each other's memory
  std::int64_t staged_up_to = 0;   // bytes of advertised messages that need not be pulled
  std::int64_t pull_from = -1;     // instead: the shortest message that is pulled; negative: unset
  std::int64_t lasting_up_to = 0;  // bytes of staging for whose receivers the sender does not wait
  bool in_place = false;
  topology::HostMap hosts{};  // as BindOptions::hosts
};

// The shares of a slot in the data area, in bytes. Pure.
struct BlockShares {
  static BlockShares of(const LocalOptions& options);

  // That of a block of so many bytes: from the data area's begin on.
  std::int64_t place(std::int64_t slot, std::int64_t bytes) const {
    return is_short(bytes) ? slot * short_bytes : long_begin + slot * long_bytes;
  }
  bool is_short(std::int64_t bytes) const { return bytes <= short_bytes; }

  std::int64_t short_bytes = 0;
  std::int64_t long_begin = 0;  // all those of short blocks lie before
  std::int64_t long_bytes = 0;  // the same as short_bytes: there are none for long blocks
};

// The longest block in bytes that goes through the receive buffers.
std::int64_t longest_block(const LocalOptions& options);

// Schedules of send, wait and copy whose slots are numbered by their senders' ranks, without the
// own one (slot_number). A rank with one sender only has slot 0.
Program bind_local(const schedule::Schedule& schedule, const LocalOptions& options);

}  // namespace unisono::plan
