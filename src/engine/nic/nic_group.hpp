// SPDX-License-Identifier: BSD-3-Clause
// NicGroup: a rank's part of a group of hosts whose small collectives run in the NIC path. Barrier,
// allreduce, reduce and broadcast go by trees (nic_reduction.hpp), in one packet or a few
// (nic/port/vector_limit.hpp). Allgathers go among up to 64 hosts (nic_allgather.hpp); short ones
// of hosts with several ranks go by a tree. A group is made in three steps, between which the ranks
// exchange what they have, so that either all ranks use it or none does:
//   open(); exchange capabilities(); join(all of them); exchange whether that went well.
// Of several ranks on a host, one leads (place 0): it joins first and watches the other hosts and
// the daemon. The others share its memory.
//
// One operation at a time, and no call of this class waits: start(), poll() until it says true,
// take(); meanwhile repair() now and then, or sleep as arm() says. nic_wait.hpp has a loop that
// does this. An error ends the group: never a wrong result. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/nic/nic_allgather.hpp"
#include "engine/nic/nic_reduction.hpp"
#include "nic/service/capabilities.hpp"
#include "nic/service/client.hpp"
#include "plan/nic_call.hpp"

namespace unisono::engine {

struct NicGroupOptions {
  std::string path = nic::kServicePath;  // of the daemon's socket
  unisono_nic_id id = {};
  unisono_key key = {};
  std::uint32_t address = 0;    // this host's in the NIC path, network order; 0: the first one
  std::uint32_t multicast = 0;  // of 239.0.0.0/8, network order
  int rank = 0;                 // this host's, and how many hosts there are
  int ranks = 0;
  int place = 0;  // this rank's on its host, and how many ranks the host has
  int places = 1;
  std::byte* memory = nullptr;        // of several: NicGroup::memory_bytes(places), zero at first
  topology::HostMap map;              // the ranks of all hosts; empty: each host has one
  bool multicasts = true;             // results go to all hosts at once; if not, down the tree
  nic::Preferences preferences = {};  // this rank's
  // The costs by which it cuts vectors, the same for all ranks; outlives join(). Null: the default
  // machine.
  const model::Machine* machine = nullptr;
};

class NicGroup {
 public:
  // The size of the memory that the ranks of one host share.
  static std::int64_t memory_bytes(int places);
  // Connects to the daemon of this host.
  static base::Result<std::unique_ptr<NicGroup>> open(const NicGroupOptions& options);
  const nic::Capabilities& capabilities() const { return capabilities_; }
  // `hosts`: of all hosts. All must have joined before anything is started, because earlier packets
  // are lost.
  base::Status join(std::span<const nic::Capabilities> hosts);

  // Whether this rank is its host's member of the group.
  bool leads() const { return options_.place == 0; }
  // Whether the group does allgathers.
  bool gathers() const { return allgather_ != nullptr; }
  // This host's places in the trees.
  const std::vector<nic::Node>& trees() const { return reduction_->ports().nodes(); }

  // Posts this rank's part of an operation, once the one before has been taken. `input` and
  // `output` must stay until take(); poll() may write to the output.
  base::Status start(const plan::NicCall& call, const void* input, void* output);
  // Whether the operation is done.
  base::Result<bool> poll();
  // Completes the output of an operation that is done.
  base::Status take();
  // Requests packets that may be lost, if it is time to; the error says that unisonod has ended.
  base::Status repair();
  // Ends the group: the current operation no longer touches its buffers, and each further call
  // returns this error. Other ranks that wait for this one are not informed.
  base::Error give_up(base::Error why);
  // Why the group has ended, if so.
  const std::optional<base::Error>& failure() const { return failure_; }

  // To sleep until poll() has news: arm(); if it returns true, poll wake_descriptor(), with other
  // descriptors, but not longer than repair() can wait; disarm(). On a host with very many ranks,
  // the program wakes only some of them; the others poll with short sleeps.
  bool is_woken() const {
    return is_gathering_ ? allgather_->is_woken() : reduction_->ports().is_woken();
  }
  bool arm() { return is_gathering_ ? allgather_->arm() : reduction_->ports().arm(); }
  int wake_descriptor() const {
    return is_gathering_ ? allgather_->wake_descriptor() : reduction_->ports().wake_descriptor();
  }
  void disarm() { is_gathering_ ? allgather_->disarm() : reduction_->ports().disarm(); }
  // All three, and a short sleep if the program does not wake this rank.
  void sleep(std::int64_t limit_ns);

  // When the result was in memory, once it is; by the clock of base/clock.hpp.
  std::int64_t done_ns() const {
    return is_gathering_ ? allgather_->done_ns() : reduction_->ports().done_ns();
  }
  // Whether the last operation is an allgather off the trees. If it is not done, missing() has bit
  // h for each host whose block is missing.
  bool is_gathering() const { return is_gathering_; }
  std::uint64_t missing() const { return is_gathering_ ? allgather_->missing() : 0; }
  // Bit t: this host has sent its subtree's contributions to the last operation on tree t, or that
  // operation does not use the tree. In an allgather, the number of pieces of its block that it has
  // sent.
  std::uint32_t given() const {
    return is_gathering_ ? static_cast<std::uint32_t>(allgather_->given())
                         : reduction_->ports().given();
  }
  // The number of pieces of an allgather that this rank has of all hosts.
  std::uint32_t finished() const {
    return is_gathering_ ? static_cast<std::uint32_t>(allgather_->finished()) : 0;
  }
  // Bit t: the piece of tree t is not done.
  std::uint32_t lacking() const { return is_gathering_ ? 0 : reduction_->ports().lacking(); }
  // Whether all ranks of this host have arrived at the last operation.
  bool is_host_complete() const {
    return is_gathering_ ? allgather_->is_host_complete() : reduction_->is_host_complete();
  }
  // The rank whose call differs, after an error with Code::mismatch; none: not known here.
  std::optional<NicRank> mismatching_rank() const;
  // Describes what the current operation lacks, for people: "operation 3 on host 1 lacks ...".
  std::string describe() const;

 private:
  NicGroup(const NicGroupOptions& options, std::unique_ptr<nic::ServiceClient> client)
      : options_(options), client_(std::move(client)) {}
  base::Status join_tree(const nic::Node& node, const nic::GroupAddresses& group);

  const NicGroupOptions options_;
  std::unique_ptr<nic::ServiceClient> client_;  // of the leader only, once it has joined
  nic::Capabilities capabilities_;
  std::unique_ptr<NicReduction> reduction_;  // once this rank joins
  std::unique_ptr<NicAllgather> allgather_;
  bool is_gathering_ = false;
  std::optional<base::Error> failure_;
};

}  // namespace unisono::engine
