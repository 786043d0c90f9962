// SPDX-License-Identifier: BSD-3-Clause
#include "comm/nic/nic_setup.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "engine/nic/nic_wait.hpp"
#include "wire/key.hpp"

namespace unisono::comm {
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

// A broadcast of a full packet on the tree, because a network on the way may carry short ones only.
// If there is more to the group, also a block from every rank to every rank.
Status try_nic(engine::NicGroup& group, const topology::HostMap& hosts, int rank,
               std::int64_t deadline_ns) {
  std::vector<std::uint64_t> vector(UNISONO_NIC_WORDS_MAX);
  if (rank == 0) std::iota(vector.begin(), vector.end(), kTrialMark);
  plan::NicShape shape;
  shape.collective = schedule::Collective::broadcast;
  shape.count = UNISONO_NIC_WORDS_MAX;
  shape.ranks = hosts.ranks();
  shape.hosts = hosts.hosts();
  UNISONO_ASSIGN(plan::NicCall call, plan::lower_call(shape, rank));
  call.sender = -1;
  UNISONO_TRY(engine::run_in_nic(group, call, vector.data(), vector.data(), deadline_ns));
  if (vector.front() != kTrialMark || vector.back() != kTrialMark + vector.size() - 1) {
    return Error{Code::system, "NIC path: a trial's vector has come changed"};
  }
  const plan::NicCall blocks = plan::gather_off_trees(shape, 0);
  return group.gathers() ? engine::run_in_nic(group, blocks, nullptr, nullptr, deadline_ns)
                         : base::success();
}

// One communicator's.
class NicSetup {
 public:
  NicSetup(const Members& members, const Segment& segment, bool is_world,
           const NicExchange& exchange)
      : members_(members),
        segment_(segment),
        is_world_(is_world),
        exchange_(exchange),
        job_(members.job()),
        hosts_(members.hosts()) {}

  base::Result<std::unique_ptr<NicPath>> make();

 private:
  engine::NicGroupOptions options() const;
  void join();
  base::Result<std::optional<int>> first_dissenter() const;
  void tell(const std::string& why_not) const;
  void tell_own() const;
  bool insists() const {
    return is_world_ && job_.settings().toggle(base::Setting::nic) == base::Toggle::on;
  }

  const Members& members_;
  const Segment& segment_;
  const bool is_world_;
  const NicExchange& exchange_;
  job::Job& job_;
  const topology::HostMap& hosts_;
  std::vector<nic::Capabilities> capabilities_;  // by host
  std::unique_ptr<engine::NicGroup> group_;
  Status own_ = base::success();  // why this rank cannot take it
};

// All members compute the same: the segment belongs to this communicator alone, and its first
// sequence number is not reused there.
engine::NicGroupOptions NicSetup::options() const {
  const std::string name = fmt::format("nic {} {}", segment_.offset(), segment_.mark());
  const std::uint64_t hash = wire::hash(job_.key(), name);
  engine::NicGroupOptions options;
  options.path = job_.settings().text(base::Setting::nic_socket);
  options.id = {wire::job_of(job_.key()), static_cast<std::uint32_t>(hash)};
  options.key = {wire::hash(job_.key(), name + " 1"), wire::hash(job_.key(), name + " 2")};
  options.multicast = htonl(kGroups | (static_cast<std::uint32_t>(hash >> 32) & kGroupMask));
  options.rank = hosts_.of(members_.rank());
  options.address = capabilities_[static_cast<std::size_t>(options.rank)].address.ipv4;
  options.ranks = hosts_.hosts();
  options.place = hosts_.place(members_.rank());
  options.places = static_cast<int>(hosts_.members(options.rank).size());
  options.memory = segment_.at(segment_.layout().host_reduction);
  options.map = hosts_;
  options.multicasts = job_.network()->multicasts();
  options.preferences = nic::Preferences::of(job_.settings());
  options.machine = &job_.machine();
  return options;
}

void NicSetup::join() {
  const auto go_on = [this]() -> Status {
    const engine::NicGroupOptions how = options();
    if (how.places > 1) {
      UNISONO_TRY(job_.memory().commit(segment_.offset() + segment_.layout().host_reduction,
                                       engine::NicGroup::memory_bytes(how.places),
                                       "vectors on their way into the NIC path"));
    }
    UNISONO_ASSIGN(auto group, engine::NicGroup::open(how));
    UNISONO_TRY(group->join(capabilities_));
    group_ = std::move(group);
    return base::success();
  };
  own_ = go_on();
}

base::Result<std::unique_ptr<NicPath>> NicSetup::make() {
  std::vector<int> leaders;
  for (int host = 0; host < hosts_.hosts(); ++host) {
    leaders.push_back(hosts_.members(host).front());
    const int job_host = job_.hosts().of(members_.job_rank(leaders.back()));
    capabilities_.push_back(job_.nic_capabilities()[static_cast<std::size_t>(job_host)]);
  }
  if (const Status possible = nic::check_capabilities(capabilities_, leaders); !possible) {
    tell(possible.error().message);
    return std::unique_ptr<NicPath>();
  }
  // The other ranks of a host share what its leader has joined.
  const bool leads = hosts_.place(members_.rank()) == 0;
  if (leads) join();
  UNISONO_ASSIGN(std::optional<int> without, first_dissenter());
  if (!without && !hosts_.are_alone()) {
    if (!leads) join();
    UNISONO_ASSIGN(without, first_dissenter());
  }
  if (!without) {
    const std::int64_t trial_ns =
        job_.settings().time_ns(base::Setting::start_timeout) / kTrialsInStartTimeout;
    own_ = try_nic(*group_, hosts_, members_.rank(), base::now_ns() + trial_ns);
    UNISONO_ASSIGN(without, first_dissenter());
  }
  if (!without) {
    tell({});
    auto path =
        std::make_unique<NicPath>(std::move(group_), segment_.mark(), hosts_, members_.rank());
    path->completed = 1;
    path->preferences = capabilities_.front().preferences;
    return path;
  }
  if (!own_) {
    tell_own();
  } else {
    tell(fmt::format("the NIC path is not used: {} cannot; it says why", members_.name(*without)));
  }
  return std::unique_ptr<NicPath>();
}

// The first rank that does not go along, if there is one. Collective.
base::Result<std::optional<int>> NicSetup::first_dissenter() const {
  const auto own = static_cast<std::uint8_t>(own_.ok());
  std::vector<std::uint8_t> all(static_cast<std::size_t>(members_.size()));
  UNISONO_TRY(exchange_(&own, all.data(), sizeof own));
  const auto found = std::ranges::find(all, std::uint8_t{0});
  if (found == all.end()) return std::optional<int>();
  return std::optional(static_cast<int>(found - all.begin()));
}

// Only this rank knows the reason.
void NicSetup::tell_own() const {
  base::log(insists() ? base::LogLevel::warn : base::LogLevel::info, "nic",
            "the NIC path is not used by a communicator of {} ranks: {}", members_.size(),
            own_.error().message);
}

// For the world, logs at a level that users see; `why_not` is empty if the path is used.
void NicSetup::tell(const std::string& why_not) const {
  const base::Toggle wish = job_.settings().toggle(base::Setting::nic);
  if (members_.rank() != 0 || wish == base::Toggle::off) return;
  const auto level = !is_world_                      ? base::LogLevel::debug
                     : insists() && !why_not.empty() ? base::LogLevel::warn
                                                     : base::LogLevel::info;
  if (!why_not.empty()) return base::log(level, "nic", "{}", why_not);
  base::log(
      level, "nic",
      "a communicator of {} ranks has a NIC path: small barriers, allreduces and allgathers go "
      "by it, and rooted collectives as UNISONO_NIC_ROOTED says",
      members_.size());
}

}  // namespace

base::Result<std::unique_ptr<NicPath>> agree_on_nic(const Members& members, const Segment& segment,
                                                    bool is_world, const NicExchange& exchange) {
  if (members.on_one_host() || members.job().nic_capabilities().empty()) {
    return std::unique_ptr<NicPath>();
  }
  return NicSetup(members, segment, is_world, exchange).make();
}

}  // namespace unisono::comm
