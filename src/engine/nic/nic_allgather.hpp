// SPDX-License-Identifier: BSD-3-Clause
// NicAllgather: a rank's part in the allgathers of a group of ranks, one on each host, in the NIC
// path. Blocks have any length, the same at all ranks. They go singly, by multicast or from host to
// host. Short ones of many ranks are joined to messages of doubling size. One allgather at a time:
// start(), poll() until it returns true, and repair() now and then meanwhile. After an error it is
// unusable. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"
#include "engine/nic/nic_patience.hpp"
#include "nic/lowering/row.hpp"
#include "nic/port/allgather_segments.hpp"
#include "nic/service/client.hpp"
#include "select/nic/pays.hpp"

namespace unisono::engine {

class NicAllgather {
 public:
  // `group`: that of the ranks' tree, with its multicast address. `costs`: by which it joins
  // blocks, the same for all ranks. Its rows end with the client's connection. Code::unsupported
  // for more than UNISONO_NIC_RANKS_MAX ranks. All ranks must have joined before anything is
  // started.
  static base::Result<std::unique_ptr<NicAllgather>> join(nic::ServiceClient& client,
                                                          const nic::GroupAddresses& group,
                                                          int rank,
                                                          const select::NicBlockCosts& costs);

  // Posts the block, or as much of it as may be in flight at once. The mark distinguishes calls
  // that should be the same at all ranks. `result` has room for the blocks of all ranks, one after
  // another; the block may lie in its own place there. Both must stay until poll() returns true.
  base::Status start(std::span<const std::byte> block, std::span<std::byte> result,
                     std::uint32_t mark);
  // Posts more of the block, and copies arrived blocks to the result; true: it has all.
  base::Result<bool> poll() { return way_->segments.step(); }
  // Requests packets that may be lost, if it is time to.
  base::Status repair();
  // As NicGroup's.
  std::int64_t done_ns() const { return way_->segments.done_ns(); }
  bool arm() { return way_->port->arm(*way_->wakes, way_->segments.awaited()); }
  int wake_descriptor() const { return way_->wakes->descriptor(); }
  void disarm() { way_->port->disarm(*way_->wakes, way_->segments.awaited()); }
  void sleep(std::int64_t limit_ns);  // all three
  // The rank whose call differs, once poll() has failed with Code::mismatch; -1: not known here.
  int mismatching_rank() const { return way_->segments.mismatching_rank(); }
  // Bit r for each rank whose block poll() waits for. Where blocks are joined, blocks of ranks that
  // have called may wait for one that has not.
  std::uint64_t missing() const;
  std::string describe() const;

 private:
  // One of the ways that blocks go, each with a group of its own in the program.
  struct Way {
    Way(std::unique_ptr<nic::Membership> membership, std::unique_ptr<nic::WakeRing> ring,
        std::unique_ptr<nic::AllgatherPort> opened)
        : member(std::move(membership)),
          wakes(std::move(ring)),
          port(std::move(opened)),
          segments(*port) {}
    const std::unique_ptr<nic::Membership> member;
    const std::unique_ptr<nic::WakeRing> wakes;
    const std::unique_ptr<nic::AllgatherPort> port;
    nic::AllgatherSegments segments;
  };

  static base::Result<std::unique_ptr<Way>> join_way(nic::ServiceClient& client,
                                                     const unisono_nic_row& asked);
  NicAllgather(std::unique_ptr<Way> singly, std::unique_ptr<Way> joined,
               const select::NicBlockCosts& costs)
      : costs_(costs),
        singly_(std::move(singly)),
        joined_(std::move(joined)),
        way_(singly_.get()),
        delay_(singly_->port->rank()) {}

  const select::NicBlockCosts costs_;
  const std::unique_ptr<Way> singly_;
  const std::unique_ptr<Way> joined_;  // may be absent
  Way* way_;                           // of the current allgather
  nic_patience::RepairDelay delay_;
};

}  // namespace unisono::engine
