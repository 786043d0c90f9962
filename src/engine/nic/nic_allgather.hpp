// SPDX-License-Identifier: BSD-3-Clause
// NicAllgather: a rank's part in the allgathers of a group of ranks, one on each host, in the NIC
// path. Blocks of any length, one allgather at a time. start(), poll() until it says true, and
// look_around() now and then meanwhile; or run(), which does that. After an error it is of no use.
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/prng.hpp"
#include "base/result.hpp"
#include "nic/allgather_segments.hpp"
#include "nic/row.hpp"
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
  base::Result<bool> poll() { return segments_.step(); }
  // Asks for what may be lost; the error says that the daemon has gone.
  base::Status look_around();
  // As NicGroup's.
  std::int64_t done_ns() const { return segments_.done_ns(); }
  bool arm() { return port_->arm(*wakes_, segments_.awaited()); }
  int wake_descriptor() const { return wakes_->descriptor(); }
  void disarm() { port_->disarm(*wakes_, segments_.awaited()); }
  void sleep(std::int64_t limit_ns);  // all three
  // Whose call differs, once poll() has failed with Code::mismatch.
  int odd_rank() const { return segments_.odd_rank(); }
  // Of what poll() waits for: bit o for each rank whose block is not here.
  std::uint64_t missing() const;

  // Blocking. `deadline_ns`: by the clock of base/clock.hpp.
  base::Status run(std::span<const std::byte> block, std::span<std::byte> result,
                   std::int64_t deadline_ns, std::uint32_t mark = 0);

 private:
  NicAllgather(nic::ServiceClient& client, std::unique_ptr<nic::Membership> member,
               std::unique_ptr<nic::WakeRing> wakes, std::unique_ptr<nic::AllgatherPort> port)
      : client_(client),
        member_(std::move(member)),
        wakes_(std::move(wakes)),
        port_(std::move(port)),
        segments_(*port_),
        random_(static_cast<std::uint64_t>(port_->rank())) {}
  std::int64_t random_patience(std::int64_t least_ns);
  base::Error too_late() const;

  nic::ServiceClient& client_;
  const std::unique_ptr<nic::Membership> member_;
  const std::unique_ptr<nic::WakeRing> wakes_;
  const std::unique_ptr<nic::AllgatherPort> port_;
  nic::AllgatherSegments segments_;
  base::Prng random_;
  std::int64_t patience_ns_ = 0;  // until it asks for what is missing
};

}  // namespace unisono::engine
