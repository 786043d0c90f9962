// SPDX-License-Identifier: BSD-3-Clause
// Lowering of an allgather whose messages double: which blocks a rank's NIC joins in each message
// that it sends, and which it finds in each that comes, read off a schedule. The NIC program sends
// a message as soon as all blocks in it are there, the own one among them; so what a schedule sends
// is kept, and its pace is not. A schedule that does anything else is refused, and the message says
// which op it is that does not fit. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "schedule/schedule.hpp"

namespace unisono::nic {

// Blocks of several origins, in the order of their ranks.
struct BlockMessage {
  int peer = -1;              // rank that it goes to, or comes from
  schedule::SlotId slot = 0;  // of the rank that takes it: its number there
  std::uint64_t blocks = 0;   // bit o: that of rank o

  bool operator==(const BlockMessage&) const = default;
};

// A rank's part in an allgather.
struct Doubling {
  int rank = 0;
  int ranks = 0;
  std::vector<BlockMessage> gives;  // in the order in which the schedule sends them
  std::vector<BlockMessage> takes;  // by slot

  bool operator==(const Doubling&) const = default;
};

// No block may be empty. The messages serve blocks of any length.
base::Result<Doubling> lower_doubling(const schedule::Schedule& schedule);

// How many blocks the largest message has.
int largest_message(const Doubling& doubling);

// Whether all that ranks 0 .. P-1 take is given, no more, and everybody gets all blocks so; and
// whether the largest messages of all are alike: a frame is made for one that large, so that it
// need not grow where the next message takes its place. Some schedules can be lowered at some ranks
// only, so a group lowers those of all ranks before it relies on any.
base::Status check_doubling(std::span<const Doubling> all);

}  // namespace unisono::nic
