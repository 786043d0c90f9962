// SPDX-License-Identifier: BSD-3-Clause
// NicBroadcast: a rank's part in the broadcasts of a group of hosts whose root multicasts its block
// itself (decisions 78 and 79). The root waits for nobody, and the others for the root only. The
// group is an allgather's whose operations have one block each. All ranks of a host read that block
// where the program has put it.
//
// No call acknowledges a block. An operation to which all hosts contribute shows which blocks all
// ranks have read, and so which memory may be used again. After some broadcasts in a row the group
// has a barrier of its own for that (nic_group.hpp), for which no call waits.
//
// Several broadcasts may be in flight, each a NicCasting: start(), poll() until it returns true,
// take(), and NicBroadcast::repair() now and then meanwhile. After an error, it and all later ones
// are unusable. One thread at a time. Data path: no allocation, no lock, except for the text of an
// error.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "engine/nic/nic_blocks.hpp"
#include "engine/nic/nic_patience.hpp"
#include "nic/lowering/row.hpp"
#include "nic/port/vector_limit.hpp"
#include "nic/service/client.hpp"
#include "plan/nic_call.hpp"
#include "topology/host_map.hpp"

namespace unisono::engine {

class NicBroadcast {
 public:
  // Blocks that are kept for ranks that lack them.
  static constexpr std::uint64_t kSlots = 32;
  // With each so many in a row a barrier begins. It acknowledges all but those that may be in
  // flight with it, and has to be done when the next one begins.
  static constexpr std::uint64_t kInARow = kSlots / 2;
  // A root sends no more blocks that others may still lack. Its receivers may expect a few more, so
  // that the end of the barrier wakes the root only.
  static constexpr std::uint64_t kAhead = kSlots - nic::kInFlightMax;

  // This rank: at `place` of host number `host`. `ranks`: of all hosts.
  struct Rank {
    topology::HostMap ranks;
    int host = 0;
    int place = 0;
  };
  // Joins as NicAllgather does. `group`: that of the hosts' tree, with its multicast address.
  static base::Result<std::unique_ptr<NicBroadcast>> join(nic::ServiceClient& client,
                                                          nic::GroupAddresses group, Rank rank);

  // How many have started here, in the same order at all ranks.
  std::uint64_t started() const { return blocks_.port->next(); }
  // All ranks have read the blocks of so many.
  void note_read_by_all(std::uint64_t count) { read_by_all_ = std::max(read_by_all_, count); }
  // Whether another may start.
  bool has_room(bool is_root) const {
    return started() - read_by_all_ < (is_root ? kAhead : kSlots);
  }
  // Requests blocks that may be lost, if it is time to.
  base::Status repair();

 private:
  friend class NicCasting;
  NicBroadcast(NicBlocks blocks, Rank rank)
      : blocks_(std::move(blocks)), rank_(std::move(rank)), delay_(blocks_.port->rank()) {}

  const NicBlocks blocks_;
  const Rank rank_;
  std::uint64_t read_by_all_ = 0;
  nic_patience::RepairDelay delay_;
};

// One broadcast at a time; used again for a later one.
class NicCasting {
 public:
  // `calls`: outlives it.
  explicit NicCasting(NicBroadcast& calls) : calls_(calls) {}

  bool has_room(const plan::NicCall& call) const { return calls_.has_room(!call.takes); }
  // At the root, multicasts `input`. `call`: of at most a packet. `output` must stay until take().
  base::Status start(const plan::NicCall& call, const void* input, void* output);
  // Whether the block is here.
  base::Result<bool> poll();
  base::Status take();

  // As NicFlight's.
  std::int64_t done_ns() const { return port().done_ns(operation_); }
  bool arm() { return port().arm(*calls_.blocks_.wakes, operation_); }
  int wake_descriptor() const { return calls_.blocks_.wakes->descriptor(); }
  void disarm() { port().disarm(*calls_.blocks_.wakes, operation_); }
  void sleep(std::int64_t limit_ns);  // all three
  // Once it has failed with Code::mismatch: the host and the place of the root, as this rank knows
  // it; -1: this rank is that root.
  int mismatching_host() const { return call_.takes ? root_host_ : -1; }
  int mismatching_place() const { return calls_.rank_.ranks.place(call_.sender); }
  // The bit of the root's host; 0: the block is here.
  std::uint64_t missing() const;
  // On the root's host, whether the root has called. On others nothing has to be done first.
  bool is_host_complete() const { return !is_roots_host() || port().is_given(operation_); }
  // Blocks that this host has sent, of one, and that all ranks here have waited for before.
  std::uint64_t given() const { return is_roots_host() && port().is_given(operation_) ? 1 : 0; }
  std::uint64_t finished() const { return 0; }
  std::string describe() const;

 private:
  nic::AllgatherPort& port() const { return *calls_.blocks_.port; }
  bool is_roots_host() const { return root_host_ == calls_.rank_.host; }

  NicBroadcast& calls_;
  plan::NicCall call_;
  void* output_ = nullptr;
  std::uint64_t operation_ = 0;
  int root_host_ = 0;
};

}  // namespace unisono::engine
