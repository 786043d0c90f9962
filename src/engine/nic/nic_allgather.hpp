// SPDX-License-Identifier: BSD-3-Clause
// NicAllgather: a rank's part in the allgathers of a group of hosts in the NIC path. Blocks have
// any length, the same at all ranks. The ranks of a host write theirs side by side, and these go
// into the network as one block. Hosts' blocks go singly, by multicast or from host to host. Short
// ones of many hosts with one rank each are joined to messages of doubling size. Several allgathers
// may be in flight, each a NicGathering: start(), poll() until it returns true, and
// NicAllgather::repair() now and then meanwhile. After an error, it and all later ones are
// unusable. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "engine/nic/nic_blocks.hpp"
#include "engine/nic/nic_patience.hpp"
#include "nic/lowering/row.hpp"
#include "nic/port/allgather_segments.hpp"
#include "nic/port/host_blocks.hpp"
#include "nic/port/vector_limit.hpp"
#include "nic/service/client.hpp"
#include "topology/host_map.hpp"

namespace unisono::engine {

class NicAllgather {
 public:
  // This rank: at `place` of host number `host`. `ranks`: of all hosts. `memory`: where this host
  // has several, HostBlocks::memory_bytes() for them, zero at first.
  struct Rank {
    topology::HostMap ranks;
    int host = 0;
    int place = 0;
    std::byte* memory = nullptr;
  };
  // `group`: that of the hosts' tree, with its multicast address. `joins`: some of its calls join
  // blocks; the same for all ranks. The rank at place 0 joins at the daemon, before the others of
  // its host; the rows end with its client's connection. Code::unsupported for more than
  // UNISONO_NIC_RANKS_MAX hosts. All ranks must have joined before anything is started.
  static base::Result<std::unique_ptr<NicAllgather>> join(nic::ServiceClient& client,
                                                          const nic::GroupAddresses& group,
                                                          const Rank& rank, bool joins);

  // Requests packets that may be lost in any allgather in flight, if it is time to.
  base::Status repair();
  // Whether the program can wake this process.
  bool is_woken() const { return singly_->wakes != nullptr; }

 private:
  friend class NicGathering;
  using Segments = std::array<std::optional<nic::AllgatherSegments>, nic::kInFlightMax>;
  // One of the ways that blocks go, each with a group of its own in the program.
  struct Way : NicBlocks {
    Way(NicBlocks blocks, const Rank& rank);
    const std::unique_ptr<nic::HostBlocks> together;  // none: this rank is alone on its host
    Segments segments;                                // by number of the call
    nic::AllgatherSegments* last = nullptr;           // that began last
  };

  static std::unique_ptr<nic::HostBlocks> blocks_of_host(const Rank& rank);
  static base::Result<std::unique_ptr<Way>> join_way(nic::ServiceClient& client,
                                                     const unisono_nic_row& asked,
                                                     const Rank& rank);
  NicAllgather(std::unique_ptr<Way> singly, std::unique_ptr<Way> joined)
      : singly_(std::move(singly)), joined_(std::move(joined)), delay_(singly_->port->rank()) {}
  // `joins`: as the call's plan says.
  Way& way_of(bool joins) const { return joins && joined_ != nullptr ? *joined_ : *singly_; }

  const std::unique_ptr<Way> singly_;
  const std::unique_ptr<Way> joined_;  // may be absent
  nic_patience::RepairDelay delay_;
};

// One allgather at a time; used again for a later one.
class NicGathering {
 public:
  // `calls`: outlives it.
  explicit NicGathering(NicAllgather& calls) : calls_(calls), way_(calls.singly_.get()) {}

  // Whether an allgather may start: the one before that goes the same way has posted its block.
  bool has_room(bool joins) const;
  // Posts the block, or as much of it as may be in flight at once. The mark distinguishes calls
  // that should be the same at all ranks. `result` has room for the blocks of all ranks, one after
  // another; the block may lie in its own place there. Both must stay until poll() returns true.
  // `number`: of the call in its group. `joins`: as its plan says.
  base::Status start(std::uint64_t number, bool joins, std::span<const std::byte> block,
                     std::span<std::byte> result, std::uint32_t mark);
  // Posts more of the block, and copies arrived blocks to the result; true: it has all.
  base::Result<bool> poll() { return segments_->step(); }

  // As NicFlight's.
  std::int64_t done_ns() const { return segments_->done_ns(); }
  bool arm();
  int wake_descriptor() const { return way_->wakes->descriptor(); }
  void disarm() { way_->port->disarm(*way_->wakes, armed_); }
  void sleep(std::int64_t limit_ns);  // all three
  // The host and the place of the rank whose call differs, once poll() has failed with
  // Code::mismatch; -1: not known here.
  int mismatching_host() const { return segments_->mismatching_host(); }
  int mismatching_place() const { return segments_->mismatching_place(); }
  // Bit h for each host whose block poll() waits for. Where blocks are joined, blocks of hosts that
  // have called may wait for one that has not.
  std::uint64_t missing() const;
  // Whether all ranks of this host have given their parts of the awaited piece.
  bool is_host_complete() const { return segments_->is_host_complete(); }
  // Pieces of the host's block that this rank has, and pieces that the host has posted.
  std::uint64_t finished() const { return segments_->finished(); }
  std::uint64_t given() const { return segments_->given(); }
  std::string describe() const;

 private:
  NicAllgather& calls_;
  NicAllgather::Way* way_;
  nic::AllgatherSegments* segments_ = nullptr;  // once it has started
  std::uint64_t armed_ = 0;                     // the operation for which arm() sleeps
};

}  // namespace unisono::engine
