// SPDX-License-Identifier: BSD-3-Clause
// NicGroup: a rank's part of a group of hosts whose small collectives run in the NIC path. Barrier,
// allreduce, reduce and broadcast go by trees (nic_reduction.hpp), in one packet or a few
// (nic/port/vector_limit.hpp). Allgathers go among up to 64 hosts (nic_allgather.hpp); short ones
// of hosts with several ranks go by a tree. The root of a broadcast may multicast its block itself
// (nic_broadcast.hpp). A group is made in three steps, between which the ranks exchange what they
// have, so that either all ranks use it or none does:
//   open(); exchange capabilities(); join(all of them); exchange whether that went well.
// Of several ranks on a host, one leads (place 0): it joins first and watches the other hosts and
// the daemon. The others share its memory.
//
// No call of this class waits: start(), poll() until it says true, take(); meanwhile repair() now
// and then, or sleep as NicFlight::arm() says. nic_wait.hpp has a loop that does this. A rank may
// start up to kInFlightMax operations before it takes the first one, if they have room in the
// program's memory; it takes them in any order. An error ends its operation and all later ones:
// never a wrong result. One thread at a time.
//
// After some multicasts of roots in a row, all ranks start a barrier beside the last of them, which
// acknowledges those before. No call waits for it, but a start has no room while it is needed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/nic/nic_allgather.hpp"
#include "engine/nic/nic_broadcast.hpp"
#include "engine/nic/nic_flight.hpp"
#include "engine/nic/nic_patience.hpp"
#include "engine/nic/nic_reduction.hpp"
#include "nic/port/tree_ports.hpp"
#include "nic/port/vector_limit.hpp"
#include "nic/service/capabilities.hpp"
#include "nic/service/client.hpp"
#include "plan/nic_call.hpp"
#include "select/nic/split_choice.hpp"

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
  // Whether roots of broadcasts multicast their blocks.
  bool casts() const { return broadcast_ != nullptr; }
  // This host's places in the trees.
  const std::vector<nic::Node>& trees() const { return ports_.nodes(); }
  // On a host with very many ranks, the program wakes only some of them; the others poll with short
  // sleeps.
  bool is_woken() const { return ports_.is_woken(); }

  // Whether start() has room. With no operation in flight it has, unless it needs the
  // acknowledgement that is under way.
  bool may_start(const plan::NicCall& call);
  // Posts this rank's part of an operation. `input` and `output` must stay until take(); poll() may
  // write to the output. The result stays valid until take(). If this operation fails at once,
  // poll() says so, and its flight knows which rank differs; an error here is one of before.
  base::Result<NicFlight*> start(const plan::NicCall& call, const void* input, void* output);
  // Whether the operation is done.
  base::Result<bool> poll(NicFlight& flight);
  // Completes the output of an operation that is done.
  base::Status take(NicFlight& flight);
  // Requests packets that may be lost in any operation in flight, if it is time to; the error says
  // that unisonod has ended.
  base::Status repair();
  // Sleeps until poll() may have news; not longer than the limit.
  void sleep(NicFlight& flight, std::int64_t limit_ns);
  // Ends the group: the operations in flight no longer touch their buffers, and each further call
  // returns this error. Other ranks that wait for this one are not informed.
  base::Error give_up(base::Error why);
  // Why the group has ended, if so.
  const std::optional<base::Error>& failure() const { return failure_; }
  // The rank whose call differs, after a failure with Code::mismatch; none: not known here.
  const std::optional<NicRank>& mismatching_rank() const { return mismatching_rank_; }

  // Whether an acknowledgement of multicasts is under way. It ends when all ranks have made the
  // calls before it.
  bool acknowledges() const { return acknowledgement_ && acknowledgement_->is_under_way_; }
  // The first operation that is not taken; if there is none, the acknowledgement that is under way,
  // or else the last operation. Once one has started.
  NicFlight& oldest();
  // Whether one of the last operations awaits blocks, and whether one is the multicast of a root.
  // They are the latest one, and those that other ranks could have in flight with it.
  bool has_awaited_blocks_lately() const;
  bool has_cast_lately() const;

 private:
  NicGroup(const NicGroupOptions& options, std::unique_ptr<nic::ServiceClient> client)
      : options_(options), client_(std::move(client)), delay_(options.rank) {}
  base::Status join_tree(const nic::Node& node, const nic::GroupAddresses& group);
  plan::NicCall with_way(plan::NicCall call) const;
  void count_casts(NicFlight& flight, bool is_casting);
  base::Status acknowledge(const plan::NicCall& after);
  void collect_acknowledgement();

  base::Error fail(const NicFlight& flight, base::Error why);
  NicFlight& at(std::uint64_t number) { return *flights_[number % flights_.size()]; }

  const NicGroupOptions options_;
  std::unique_ptr<nic::ServiceClient> client_;  // of the leader only, once it has joined
  nic::Capabilities capabilities_;
  int ranks_ = 0;  // of all hosts
  // Once this rank joins.
  nic::TreePorts ports_;
  select::SplitChoice splits_;
  std::unique_ptr<NicAllgather> allgather_;
  std::unique_ptr<NicBroadcast> broadcast_;
  std::array<std::unique_ptr<NicFlight>, nic::kInFlightMax> flights_;
  nic_patience::RepairDelay delay_;
  // Operations that have started, and the first that is not taken.
  std::uint64_t begun_ = 0, oldest_ = 0;
  // Multicasts of roots since the last operation to which all contribute, and a barrier that
  // acknowledges them; none: the group has no such multicasts.
  std::uint64_t casts_in_a_row_ = 0;
  std::unique_ptr<NicFlight> acknowledgement_;
  std::optional<base::Error> failure_;
  std::uint64_t failed_from_ = 0;  // the first operation that failed
  std::optional<NicRank> mismatching_rank_;
};

}  // namespace unisono::engine
