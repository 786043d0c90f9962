// SPDX-License-Identifier: BSD-3-Clause
// Binding a schedule whose rank knows its own counts only (gatherv, scatterv, alltoallv). Others'
// windows cannot be laid out from their schedules, so all are alike: slot s has line s and an equal
// share of the data area. What is longer is offered: from the caller's memory where it may be
// pulled and stays, else from staging in job memory; a receiver on another host gets it from there
// through its own share. Every message has its length beside its flag.
// Control path; pure; any thread.
#pragma once

#include "engine/bind.hpp"
#include "engine/lane.hpp"
#include "engine/program.hpp"
#include "schedule/schedule.hpp"

namespace unisono::engine {

struct LocalOptions {
  std::int64_t element_bytes = 1;
  BufferLayout input, output;  // each block in one piece
  LaneGeometry geometry;       // at least 2 lines a rank
  bool pull = false;           // ranks can read each other's memory
  bool in_place = false;
  topology::HostMap hosts{};  // as BindOptions::hosts
};

// The longest block in bytes that goes through the windows.
std::int64_t longest_block(const LocalOptions& options);

// Schedules of send, wait and copy whose slots are numbered by their senders' ranks, the own one
// left out (slot_number); a rank with one sender only has slot 0.
Program bind_local(const schedule::Schedule& schedule, const LocalOptions& options);

}  // namespace unisono::engine
