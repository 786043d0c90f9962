// SPDX-License-Identifier: BSD-3-Clause
// NicAllgather: a rank's part in the allgathers of a group of ranks, one on each host, in the NIC
// path. Blocks of any length, one allgather at a time: by multicast or, short ones of many ranks,
// joined to messages that double. start(), poll() until it says true, and
// look_around() now and then meanwhile; or run(), which does that. After an error it is of no use.
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/prng.hpp"
#include "base/result.hpp"
#include "nic/lowering/row.hpp"
#include "nic/port/allgather_segments.hpp"
#include "nic/service/client.hpp"

namespace unisono::engine {

class NicAllgather {
 public:
  // `group`: that of the ranks' tree, with its multicast address. The client outlives this.
  // Code::unsupported for more than UNISONO_NIC_RANKS_MAX ranks. Nothing may be started before all
  // have joined.
  static base::Result<std::unique_ptr<NicAllgather>> join(nic::ServiceClient& client,
                                                          const nic::GroupAddresses& group,
                                                          int rank);

  // The mark tells calls apart that ought to be the same at all ranks. `result` has room for the
  // blocks of all ranks, one after another; the block may be its own place there.
  void start(std::span<const std::byte> block, std::span<std::byte> result, std::uint32_t mark = 0);
  base::Result<bool> poll() { return way_->segments.step(); }
  // Asks for what may be lost; the error says that the daemon has gone.
  base::Status look_around();
  // As NicGroup's.
  std::int64_t done_ns() const { return way_->segments.done_ns(); }
  bool arm() { return way_->port->arm(*way_->wakes, way_->segments.awaited()); }
  int wake_descriptor() const { return way_->wakes->descriptor(); }
  void disarm() { way_->port->disarm(*way_->wakes, way_->segments.awaited()); }
  void sleep(std::int64_t limit_ns);  // all three
  // Whose call differs, once poll() has failed with Code::mismatch.
  int odd_rank() const { return way_->segments.odd_rank(); }
  // Of what poll() waits for: bit o for each rank whose block is not here. Where blocks are joined,
  // those of ranks that have come may wait for one that has not.
  std::uint64_t missing() const;

  // Blocking. `deadline_ns`: by the clock of base/clock.hpp.
  base::Status run(std::span<const std::byte> block, std::span<std::byte> result,
                   std::int64_t deadline_ns, std::uint32_t mark = 0);

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
  NicAllgather(nic::ServiceClient& client, std::unique_ptr<Way> singly, std::unique_ptr<Way> joined)
      : client_(client),
        singly_(std::move(singly)),
        joined_(std::move(joined)),
        way_(singly_.get()),
        random_(static_cast<std::uint64_t>(singly_->port->rank())) {}
  std::int64_t random_patience(std::int64_t least_ns);
  base::Error too_late() const;

  nic::ServiceClient& client_;
  const std::unique_ptr<Way> singly_;
  const std::unique_ptr<Way> joined_;  // may be absent
  Way* way_;                           // of the allgather that is under way
  base::Prng random_;
  std::int64_t patience_ns_ = 0;  // until it asks for what is missing
};

}  // namespace unisono::engine
