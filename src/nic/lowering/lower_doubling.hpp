// SPDX-License-Identifier: BSD-3-Clause
// Lowering of an allgather with messages of doubling size: derives from a schedule the blocks that
// a rank's NIC joins in each message it sends, and those in each message it receives. The NIC
// program sends a message as soon as all its blocks are there, including the own one. So it keeps a
// schedule's messages, but not its order in time. Any other schedule is refused, and the message
// names the op that does not fit. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "schedule/schedule.hpp"

namespace unisono::nic {

// Blocks of several origins, in the order of their ranks.
struct BlockMessage {
  int peer = -1;              // the rank that receives or sends it
  schedule::SlotId slot = 0;  // of the receiving rank: the message's number there
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

// No block may be empty. The messages hold for blocks of any length.
base::Result<Doubling> lower_doubling(const schedule::Schedule& schedule);

// How many blocks the largest message has.
int largest_message(const Doubling& doubling);

// Whether ranks 0 .. P-1 send exactly the messages that they receive, all ranks get all blocks, and
// the largest messages of all are equal. A frame is made with the largest size, so that it need not
// grow when the next message replaces its contents. Some schedules can be lowered at some ranks
// only, so a group lowers those of all ranks before it relies on any.
base::Status check_doubling(std::span<const Doubling> all);

}  // namespace unisono::nic
