// SPDX-License-Identifier: BSD-3-Clause
// The part of Communicator that gets it a NIC path, when it is made. What hosts offer is known
// since the start of the job, so ranks talk about it only where all have something to offer: then
// all join, all try a broadcast, and all take it or nobody does.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "group/communicator.hpp"
#include "group/nic_path.hpp"

namespace unisono::group {
namespace {

using base::Code;
using base::Error;
using base::Status;

// A barrier takes microseconds; on a busy machine it may take a second.
constexpr std::int64_t kTrialsInStartTimeout = 30;
// 239.192.0.0/14: multicast of an organization (RFC 2365).
constexpr std::uint32_t kGroups = 0xEFC00000;
constexpr std::uint32_t kGroupMask = 0x3FFFF;
constexpr std::uint64_t kTrialMark = 0x7472'6961'6C00'0000;  // "trial"

// A broadcast of a full packet, as a network on the way may carry short ones only; and where there
// is more to it, a block from everybody to everybody.
Status try_nic(engine::NicGroup& group, const topology::HostMap& hosts, int rank,
               std::int64_t deadline_ns) {
  std::vector<std::uint64_t> vector(UNISONO_NIC_WORDS_MAX);
  if (rank == 0) std::iota(vector.begin(), vector.end(), kTrialMark);
  engine::NicShape shape;
  shape.collective = schedule::Collective::broadcast;
  shape.count = UNISONO_NIC_WORDS_MAX;
  shape.ranks = hosts.ranks();
  shape.one_a_host = hosts.are_alone();
  UNISONO_ASSIGN(const engine::NicCall call, engine::lower_call(shape, rank));
  UNISONO_TRY(group.run(call, vector.data(), vector.data(), deadline_ns));
  if (vector.front() != kTrialMark || vector.back() != kTrialMark + vector.size() - 1) {
    return Error{Code::system, "NIC path: a trial's vector has come changed"};
  }
  engine::NicCall blocks;
  blocks.gathers = true;
  return group.allgather() == nullptr ? base::success()
                                      : group.run(blocks, nullptr, nullptr, deadline_ns);
}

}  // namespace

// All members come to the same: the segment is this communicator's alone, and its first sequence
// number is not used again there.
engine::NicGroupOptions Communicator::nic_options(const topology::HostMap& hosts) const {
  const std::string name = fmt::format("nic {} {}", offset_, layout_.first_sequence);
  const std::uint64_t hash = wire::hash(job_.key(), name);
  engine::NicGroupOptions options;
  options.path = job_.settings().text(base::Setting::nic_socket);
  options.id = {wire::job_of(job_.key()), static_cast<std::uint32_t>(hash)};
  options.key = {wire::hash(job_.key(), name + " 1"), wire::hash(job_.key(), name + " 2")};
  options.multicast = htonl(kGroups | (static_cast<std::uint32_t>(hash >> 32) & kGroupMask));
  options.rank = hosts.of(rank_);
  options.ranks = hosts.hosts();
  options.place = hosts.place(rank_);
  options.places = static_cast<int>(hosts.members(options.rank).size());
  options.memory = job_.memory().at(offset_ + layout_.host_reduction);
  options.one_a_host = hosts.are_alone();
  options.multicasts = job_.network()->multicasts();
  options.wishes = engine::NicWishes::of(job_.settings());
  return options;
}

base::Result<std::unique_ptr<engine::NicGroup>> Communicator::join_nic(
    const topology::HostMap& hosts, std::span<const engine::NicOffer> offers) const {
  const engine::NicGroupOptions options = nic_options(hosts);
  if (options.places > 1) {
    UNISONO_TRY(job_.memory().commit(offset_ + layout_.host_reduction,
                                     engine::HostReduction::memory_bytes(options.places),
                                     "vectors on their way into the NIC path"));
  }
  UNISONO_ASSIGN(auto group, engine::NicGroup::open(options));
  UNISONO_TRY(group->join(offers));
  return group;
}

Status Communicator::agree_on_nic() {
  if (remote_.empty() || job_.nic_offers().empty()) return base::success();
  const auto hosts = topology::HostMap::of_labels(hosts_of_members());
  std::vector<engine::NicOffer> offers;
  std::vector<int> leaders;
  for (int host = 0; host < hosts.hosts(); ++host) {
    leaders.push_back(hosts.members(host).front());
    const int job_rank = job_ranks_[static_cast<std::size_t>(leaders.back())];
    offers.push_back(job_.nic_offers()[static_cast<std::size_t>(job_.hosts().of(job_rank))]);
  }
  if (const Status possible = engine::agree(offers, leaders); !possible) {
    tell_of_nic(possible.error().message);
    return base::success();
  }
  std::unique_ptr<engine::NicGroup> group;
  Status own = base::success();
  const auto join = [&] {
    auto joined = join_nic(hosts, offers);
    if (joined) group = *std::move(joined);
    if (!joined) own = joined.error();
  };
  // What the leader of a host has joined, the others share.
  const bool leads = hosts.place(rank_) == 0;
  if (leads) join();
  UNISONO_ASSIGN(std::optional<int> without, find_without(own.ok()));
  if (!without && !hosts.are_alone()) {
    if (!leads) join();
    UNISONO_ASSIGN(without, find_without(own.ok()));
  }
  if (!without) {
    const std::int64_t trial_ns =
        job_.settings().time_ns(base::Setting::start_timeout) / kTrialsInStartTimeout;
    own = try_nic(*group, hosts, rank_, base::now_ns() + trial_ns);
    UNISONO_ASSIGN(without, find_without(own.ok()));
  }
  if (!without) {
    nic_ = std::make_unique<NicPath>(std::move(group), layout_.first_sequence, hosts, rank_);
    nic_->completed = 1;
    publish_standing();
    plans_.use_nic(offers[0].wishes);
    tell_of_nic({});
  } else if (!own) {
    // Only this rank knows why.
    const bool insists =
        is_world_ && job_.settings().toggle(base::Setting::nic) == base::Toggle::on;
    base::log(insists ? base::LogLevel::warn : base::LogLevel::info, "nic",
              "the NIC path is not used by a communicator of {} ranks: {}", size(),
              own.error().message);
  } else {
    tell_of_nic(
        fmt::format("the NIC path is not used: {} cannot; it says why", name_rank(*without)));
  }
  return base::success();
}

// The first rank that does not go along, if there is one. Collective.
base::Result<std::optional<int>> Communicator::find_without(bool goes_along) {
  const auto own = static_cast<std::uint8_t>(goes_along);
  std::vector<std::uint8_t> all(static_cast<std::size_t>(size()));
  UNISONO_TRY(exchange(Purpose::nic_path, 0, &own, all.data(), sizeof own));
  const auto found = std::ranges::find(all, std::uint8_t{0});
  if (found == all.end()) return std::optional<int>();
  return std::optional(static_cast<int>(found - all.begin()));
}

// For the world at a level that users see; `why_not` is empty if it is used.
void Communicator::tell_of_nic(const std::string& why_not) const {
  const base::Toggle wish = job_.settings().toggle(base::Setting::nic);
  if (rank_ != 0 || wish == base::Toggle::off) return;
  const bool insists = wish == base::Toggle::on && !why_not.empty();
  const auto level = !is_world_ ? base::LogLevel::debug
                     : insists  ? base::LogLevel::warn
                                : base::LogLevel::info;
  if (!why_not.empty()) return base::log(level, "nic", "{}", why_not);
  const bool gathers = nic_->group->allgather() != nullptr;
  base::log(
      level, "nic",
      "a communicator of {} ranks has a NIC path: small blocking barriers, allreduces{} go by "
      "it, and what has a root as UNISONO_NIC_ROOTED says",
      size(), gathers ? " and allgathers" : "");
}

}  // namespace unisono::group
