// SPDX-License-Identifier: BSD-3-Clause
// The job's tables in the memory that the ranks of a host share. Every host has them at the same
// offsets, so a rank updates those of another host by puts. The files that own an entry say who
// writes it. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "job/failure_record.hpp"
#include "nic/service/capabilities.hpp"
#include "topology/cores.hpp"
#include "wait/doorbells.hpp"

namespace unisono::job {

// silent: it does not answer, on another host; or its process is stopped, on this one.
enum class RankState : std::uint64_t { absent, present, left, dead, silent };

// Whether a rank can read the memory of all others of its host.
enum class Reach : std::uint32_t { unknown, all, not_all };

enum class Vote : std::uint64_t { unknown, no, yes };

// A host's vote on the carrier of multicasts that is tried in a round, and the decision. again: it
// does not carry, and another one can be tried. retry: the same one is tried once more (a
// decision).
enum class CarrierVote : std::uint64_t { unknown, no, yes, again, retry };

// A rank's entry.
struct alignas(64) RankHeader {
  std::atomic<std::uint64_t> state;  // RankState; a word that a put can write
  std::atomic<std::uint32_t> quota_millicores;
  std::atomic<std::uint32_t> reach;  // Reach
  // An address in this rank's own memory where the others may test whether they can read it, and
  // the value that they should find there.
  std::atomic<std::uint64_t> probe_address, probe_value;
  std::atomic<std::uint64_t> stops;  // the word of a StopWatch; for the ranks of its host
  // When a rank of its host last looked at /proc whether it lives; by base::now_ns().
  std::atomic<std::int64_t> looked_ns;
  // For a rank of another host: the rank of this host that has logged its silence, + 1; 0: none.
  std::atomic<std::uint64_t> suspected_by;
  std::atomic<std::uint64_t> passed_on;  // 1: this host has reported to others that the rank is
                                         // lost
  // At the job's first rank, for each host's first: a `CarrierVote` with its round, in a word that
  // a put can write. After the start, a no says that the multicasts of some host no longer reach
  // it.
  std::atomic<std::uint64_t> hears_multicast;
  // It has all that it needs; of a host's first rank, at the job's first: so have all of its host.
  std::atomic<std::uint64_t> started, host_started;
  // The rank tells other hosts why it could not start (start/start_up.hpp), or why another rank is
  // lost, which `told_loss` names as JobHeader::first_lost does (loss/losses.hpp). Both are written
  // by one put. `reports_loss`: the same, where both are complete for the ranks of this host.
  FailureNotice::Text report;
  std::atomic<std::uint64_t> told_loss;
  std::atomic<std::uint64_t> reports_loss;
  // For a host's first rank: the host's abilities, valid by the `Vote`. Written by puts.
  nic::Capabilities nic_capabilities;
  std::atomic<std::uint64_t> has_nic;
  // At the job's first rank, for each host's first: a `Vote`, that the host has room for the
  // machine file. Written by a put.
  std::atomic<std::uint64_t> has_machine_room;
  std::atomic<std::uint64_t> cores[topology::kMostCores / 64];
};

// Zero is its initial state.
struct alignas(64) JobHeader {
  std::atomic<std::uint32_t> events;  // see Events
  // 0: not there yet
  std::atomic<std::int64_t> ranks_offset, doorbells_offset, bulk_offset, world_offset;
  std::atomic<std::uint64_t> least_sequence;  // with which a communicator begins in used memory
  std::atomic<std::uint64_t> multicast;       // between the hosts: a `CarrierVote` with its round
  std::atomic<std::uint64_t> updates;         // by a put from another host: there may be updates
  // The rank that was lost first, as this host knows it: rank + 1, and its RankState from bit 32
  // on; 0: none. At the start also written by a put from another host.
  std::atomic<std::uint64_t> first_lost;
  std::atomic<std::uint32_t> first_lost_told;  // 1: a rank of this host tells the other hosts
  // The machine file of rank 0 (start/agree_on_machine.cpp). Its bytes + 2, or 1 for the default
  // one; where it lies; and whether it is there. Two of them are written by puts.
  std::atomic<std::uint64_t> machine_size;
  std::atomic<std::int64_t> machine_offset;
  std::atomic<std::uint64_t> machine_is_there;
  // UNISONO_REPRODUCIBLE of rank 0, + 1; 0: not there yet. Written by a put from another host.
  std::atomic<std::uint64_t> reproducible;
  std::atomic<std::uint64_t> heterogeneous;  // the same of UNISONO_HETEROGENEOUS
  wait::SleeperTable sleepers;
  // A rank that could not start (start/start_up.hpp), and which one of another host reported it.
  FailureRecord start_failure;
  std::atomic<std::uint64_t> start_failed_elsewhere;
  std::atomic<std::uint64_t> all_started;
};

}  // namespace unisono::job
