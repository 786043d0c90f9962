// SPDX-License-Identifier: BSD-3-Clause
// NicGroup: a rank's part of a group of hosts whose small collectives run in the NIC path: barrier,
// allreduce, reduce and broadcast, in one packet or a few (nic/port/vector_limit.hpp), all on one
// tree or, long vectors, in pieces on several, and allgather; one at a time. Made in three steps
// between which the ranks exchange what they have, so that all take it or nobody does:
//   open(); exchange capabilities(); join(all of them); exchange whether that went well.
// Of several ranks on a host, one is the member (place 0) and joins first; the others share its
// memory. They combine their vectors there (host_reduction.hpp); the last to come posts the sum,
// and all of them poll the result where the program puts it. What concerns other hosts and the
// daemon is for the member to look at: while the host waits for them, it waits as well. Allgathers
// are for groups of one rank a host (nic_allgather.hpp). What goes wrong later is an error, and the
// group is of no use from then on: never a wrong result, and no wait beyond the deadline. One
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "base/result.hpp"
#include "engine/nic/host_reduction.hpp"
#include "engine/nic/nic_allgather.hpp"
#include "engine/nic/nic_call.hpp"
#include "nic/port/tree_ports.hpp"
#include "nic/service/capabilities.hpp"
#include "nic/service/client.hpp"
#include "select/nic/split_choice.hpp"

namespace unisono::engine {

struct NicGroupOptions {
  std::string path = nic::kServicePath;  // of the daemon's socket
  unisono_nic_id id = {};
  unisono_key key = {};
  std::uint32_t multicast = 0;  // of 239.0.0.0/8, network order
  int rank = 0;                 // this host's, and how many hosts there are
  int ranks = 0;
  int place = 0;  // this rank's on its host, and how many ranks the host has
  int places = 1;
  std::byte* memory = nullptr;  // of several: HostReduction::memory_bytes(places), zero at first
  bool one_a_host = true;       // every host has one rank
  bool multicasts = true;       // results go to all hosts at once; if not, down the tree
  nic::Preferences preferences = {};  // this rank's
};

// A rank, by where it is.
struct NicRank {
  int host = 0;
  int place = 0;
};

class NicGroup {
 public:
  // Connects to the daemon of this host.
  static base::Result<std::unique_ptr<NicGroup>> open(const NicGroupOptions& options);

  const nic::Capabilities& capabilities() const { return capabilities_; }
  // Of all ranks. Nothing may be run before all have joined: what comes too early is lost.
  base::Status join(std::span<const nic::Capabilities> hosts);

  // Blocking. `deadline_ns`: by the clock of base/clock.hpp.
  base::Status run(const NicCall& call, const void* input, void* output, std::int64_t deadline_ns);

  // The allgathers of the same ranks; nullptr if the NIC path does none for so many.
  NicAllgather* allgather() { return allgather_.get(); }

  // The same in turns, for who has other work meanwhile: start(), poll() until it says true,
  // take(); while it waits, look_around() now and then. An allgather writes `output` meanwhile.
  base::Status start(const NicCall& call, const void* input, void* output);
  base::Result<bool> poll();
  // When the result was in memory, once it is; by the clock of base/clock.hpp.
  std::int64_t done_ns() const { return gathers_ ? allgather_->done_ns() : trees_.done_ns(); }
  // Asks for what may be lost; the error says that the daemon has gone.
  base::Status look_around();
  // Whether the program can wake this rank; of very many ranks a host not all. They nap.
  bool is_woken() const { return trees_.is_woken(); }
  // To sleep until poll() has something to say, if so: arm(); if it says true, poll
  // wake_descriptor(), with whatever else is waited for, though not for longer than look_around()
  // can wait; disarm().
  bool arm() { return gathers_ ? allgather_->arm() : trees_.arm(); }
  int wake_descriptor() const {
    return gathers_ ? allgather_->wake_descriptor() : trees_.wake_descriptor();
  }
  void disarm() { gathers_ ? allgather_->disarm() : trees_.disarm(); }
  base::Status take(const NicCall& call, void* output);

  // Whether the last operation is an allgather; of one that is not done, bit r for each rank whose
  // block is missing.
  bool is_gathering() const { return gathers_; }
  std::uint64_t missing() const { return gathers_ ? allgather_->missing() : 0; }
  // Bit t: on tree t this host has sent what it and those below it have given to the last
  // operation, or that does not go there.
  std::uint32_t given() const;
  // Bit t: what goes by tree t is not done.
  std::uint32_t lacking() const { return gathers_ ? 0 : trees_.lacking(); }
  // Whether all ranks of this host have come to the last operation.
  bool is_host_complete() const { return host_ == nullptr || host_->is_complete(); }
  // Whose call differs, once start() or poll() has failed with Code::mismatch; none: not known
  // here.
  std::optional<NicRank> odd_rank() const;
  // Whether this rank is its host's member of the group.
  bool leads() const { return options_.place == 0; }
  // This host's places in the trees.
  const std::vector<nic::Node>& trees() const { return trees_.nodes(); }

  // Why it is of no use any more, if so.
  const std::optional<base::Error>& failure() const { return failure_; }

 private:
  NicGroup(const NicGroupOptions& options, std::unique_ptr<nic::ServiceClient> client)
      : options_(options),
        client_(std::move(client)),
        random_(static_cast<std::uint64_t>(options.rank)) {}
  base::Status post_sum(const NicCall& call, const void* input);
  base::Status join_tree(const nic::Node& node, const nic::GroupAddresses& group);
  nic::TreePorts::Cut cut_of(const NicCall& call) const;
  base::Status wait(std::int64_t deadline_ns);
  void sleep_until_woken(std::int64_t limit_ns);
  base::Status repair();
  base::Result<bool> poll_allgather();
  std::int64_t random_patience(std::int64_t least_ns);
  base::Error fail(base::Error why);

  const NicGroupOptions options_;
  std::unique_ptr<nic::ServiceClient> client_;  // of the member only, once it has joined
  nic::Capabilities capabilities_;
  select::SplitChoice splits_;
  nic::TreePorts trees_;
  std::unique_ptr<HostReduction> host_;  // null: this rank is alone
  std::unique_ptr<NicAllgather> allgather_;
  bool gathers_ = false;
  base::Prng random_;
  std::int64_t patience_ns_ = 0;  // until it asks for what the operation lacks
  std::optional<int> odd_place_;
  std::optional<base::Error> failure_;
};

}  // namespace unisono::engine
