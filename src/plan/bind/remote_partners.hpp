// SPDX-License-Identifier: BSD-3-Clause
// The ranks on whose progress a program's messages depend: its receivers on its own host, and
// Program::remote_receivers; and those of other hosts that depend on its rank's: remote_senders.
// Ranks of a host read each other's receive buffers (outboxes, receive_layout.hpp). So a message to
// another host depends on all ranks there. Pure; any thread.
#pragma once

#include <span>

#include "plan/program.hpp"
#include "schedule/schedule.hpp"
#include "topology/host_map.hpp"

namespace unisono::plan {

// Program::receivers_here.
void note_receivers_here(Program& program, const schedule::Schedule& own,
                         const topology::HostMap& hosts);
// For the program of `rank` from a set of schedules. If rank b is a receiver of a's program, a is a
// sender of b's.
void note_remote_partners(Program& program, std::span<const schedule::Schedule> set, int rank,
                          const topology::HostMap& hosts);
// For a rank that does not know the others' schedules, because they depend on counts of their own.
// Its senders are those that may have blocks for its host. In a scatter that is the root. In an
// alltoall, and in a gather where the root is on its host, those are all.
void note_partners_of_local(Program& program, const schedule::Schedule& own,
                            const topology::HostMap& hosts);
// Where all ranks of other hosts are both, because one multicasts to all hosts.
void note_all_remote(Program& program, int rank, const topology::HostMap& hosts);

}  // namespace unisono::plan
