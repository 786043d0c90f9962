// SPDX-License-Identifier: BSD-3-Clause
// VerbsGroupDatagrams: datagrams of which those to the group go by verbs (multicast.hpp). The
// device is opened when the job joins its group. A device that fails is closed, with a reason; the
// datagrams to the group are lost from then on, and the layer above repeats them one by one. One
// object belongs to one rank; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "transport/job_datagrams.hpp"
#include "transport/udp/sockets.hpp"
#include "transport/verbs/multicast/group_queue.hpp"
#include "transport/verbs/multicast/multicast.hpp"

namespace unisono::transport {

// Makes this host's network deliver the group's packets, for as long as the descriptor is open.
using GroupMembership = std::function<base::Result<base::Descriptor>(const IpAddress& local,
                                                                     const MulticastGroup& group)>;
// By a socket of the kernel.
base::Result<base::Descriptor> join_by_socket(const IpAddress& local, const MulticastGroup& group);

class VerbsGroupDatagrams final : public JobDatagrams {
 public:
  // `library` outlives it. Errors: system.
  static base::Result<std::unique_ptr<VerbsGroupDatagrams>> over(
      std::unique_ptr<JobDatagrams> inner, VerbsMulticastOptions options,
      const base::Result<VerbsLibrary>& library, GroupMembership membership);
  ~VerbsGroupDatagrams() override;

  const Endpoint& endpoint() const override { return inner_->endpoint(); }
  base::Status meet(std::span<const Endpoint> peers, std::size_t max_payload) override;
  base::Status join_multicast(std::uint32_t job) override;

  const DatagramLimits& limits() const override { return limits_; }
  int rank() const override { return inner_->rank(); }
  std::size_t send(std::span<const Outgoing> datagrams) override;
  bool joins(int target) const override {
    return !(by_verbs_ && target == kGroup) && inner_->joins(target);
  }
  std::size_t receive(std::span<Incoming> datagrams) override;
  int descriptor() const override { return sleeper_.get(); }
  bool may_sleep(bool only_urgent) override;

  void give_up_multicast(std::string note) override;
  const std::string& multicast_note() const override;
  bool has_other_multicast() const override { return by_verbs_; }
  void take_other_multicast() override;
  std::uint64_t multicast_card() const override;
  void meet_member(int rank, std::uint64_t card) override;
  const std::string& multicast_loss() const override { return loss_; }

  DatagramCounts counts() const override;
  std::string last_error() const override { return loss_.empty() ? inner_->last_error() : loss_; }

 private:
  struct Member {
    IpAddress address;
    std::uint32_t queue = 0;   // 0: not known
    std::uint32_t urgent = 0;  // datagrams
    VerbsOwned<ibv_ah> way{nullptr, nullptr};
  };

  VerbsGroupDatagrams(std::unique_ptr<JobDatagrams> inner, VerbsMulticastOptions options,
                      const base::Result<VerbsLibrary>& library, GroupMembership membership);
  base::Status open(const MulticastGroup& group);
  base::Status watch(int descriptor) const;
  void close();
  void refresh_limits();
  bool goes_by_verbs(const Outgoing& datagram);
  bool send_by_verbs(const Outgoing& datagram);
  void look_for_loss();

  const std::unique_ptr<JobDatagrams> inner_;
  const VerbsMulticastOptions options_;
  const base::Result<VerbsLibrary>& library_;
  const GroupMembership membership_;
  DatagramLimits limits_;
  base::Descriptor sleeper_;
  std::uint32_t job_ = 0;
  std::vector<Member> members_;  // by rank of the job
  bool by_verbs_ = false;        // the group is reached by verbs, or was before the loss
  base::Descriptor membership_socket_;
  std::unique_ptr<VerbsGroupQueue> queue_;  // null: not opened, given up or lost
  std::string note_;
  std::string loss_;
  bool lacks_room_ = false;
  bool inner_first_ = false;
  std::uint32_t looks_ = 0;
  DatagramCounts counts_;
  std::uint64_t urgent_ = 0;
};

}  // namespace unisono::transport
