// SPDX-License-Identifier: BSD-3-Clause
#include "engine/nic/nic_group.hpp"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/check.hpp"
#include "base/clock.hpp"
#include "engine/nic/group_number.hpp"
#include "engine/nic/nic_patience.hpp"
#include "model/default_machine.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/lowering/row.hpp"
#include "nic/service/probe.hpp"
#include "select/nic/tree_choice.hpp"

namespace unisono::engine {
namespace {

using base::Error;
using base::Status;

base::Result<std::vector<nic::Node>> nodes_of(int rank, int ranks, int splits, bool multicasts) {
  const select::NicTrees trees = select::nic_trees(ranks, splits, multicasts);
  UNISONO_ASSIGN(const auto schedule,
                 algorithm::build(*trees.algorithm, trees.shape, trees.parameters, rank));
  if (!trees.has_pieces) {
    UNISONO_ASSIGN(nic::Node node, nic::lower(schedule));
    return std::vector{std::move(node)};
  }
  UNISONO_ASSIGN(std::vector<nic::Node> nodes, nic::lower_pieces(schedule));
  for (nic::Node& node : nodes) {
    if (ranks != 2 || !node.multicasts) continue;
    node.multicasts = false;
    node.forwards = {1 - rank};
  }
  return nodes;
}

nic::GroupAddresses addresses_of(const NicGroupOptions& options,
                                 std::span<const unisono_nic_address> hosts) {
  nic::GroupAddresses group;
  group.id = options.id;
  group.key = options.key;
  group.depth = nic::kPacketsMax;
  group.ranks = hosts;
  if (options.multicasts) {
    group.multicast = nic::multicast_address(options.multicast, hosts[0].port);
  }
  group.waiters =
      static_cast<std::uint32_t>(std::clamp(options.places, 1, UNISONO_NIC_WAITERS_MAX));
  return group;
}

std::unique_ptr<HostReduction> host_reduction_of(const NicGroupOptions& options) {
  if (options.places <= 1) return nullptr;
  return std::make_unique<HostReduction>(options.memory, options.place, options.places,
                                         select::nic_host_fan_in(options.places));
}

}  // namespace

std::int64_t NicGroup::memory_bytes(int places) {
  return HostReduction::memory_bytes(places) + nic::HostBlocks::memory_bytes(places);
}

base::Result<std::unique_ptr<NicGroup>> NicGroup::open(const NicGroupOptions& options) {
  UNISONO_ASSIGN(auto client, nic::ServiceClient::connect(options.path));
  std::unique_ptr<NicGroup> group(new NicGroup(options, std::move(client)));
  const auto is_own = [&options](const std::string&, std::uint32_t ipv4) {
    return options.address == 0 || ipv4 == options.address;
  };
  UNISONO_ASSIGN(const nic::Served served, nic::choose_interface(*group->client_, is_own));
  group->capabilities_ = nic::capabilities_of(served, options.preferences);
  return group;
}

Status NicGroup::join(std::span<const nic::Capabilities> hosts) {
  UNISONO_CHECK(std::cmp_equal(hosts.size(), options_.ranks), "the capabilities of each host");
  UNISONO_TRY(nic::check_capabilities(hosts));
  const model::Machine& machine =
      options_.machine != nullptr ? *options_.machine : model::default_machine();
  const topology::HostMap map =
      options_.map.given() ? options_.map : topology::HostMap::apart(options_.ranks);
  const auto splits = select::choose_splits(hosts, map.are_alone(), options_.multicasts, machine);
  UNISONO_ASSIGN(const auto nodes,
                 nodes_of(options_.rank, options_.ranks, splits.most(), options_.multicasts));
  std::vector<unisono_nic_address> addresses;
  for (const nic::Capabilities& host : hosts) addresses.push_back(host.address);
  const nic::GroupAddresses group = addresses_of(options_, addresses);
  reduction_ = std::make_unique<NicReduction>(options_.rank, host_reduction_of(options_), splits);
  for (const nic::Node& node : nodes) UNISONO_TRY(join_tree(node, group));
  if (options_.ranks <= UNISONO_NIC_RANKS_MAX) {
    std::byte* const blocks = options_.memory == nullptr
                                  ? nullptr
                                  : options_.memory + HostReduction::memory_bytes(options_.places);
    UNISONO_ASSIGN(allgather_,
                   NicAllgather::join(*client_, group, {map, options_.rank, options_.place, blocks},
                                      select::NicBlockCosts::of(machine)));
  }
  if (!leads()) client_.reset();  // the daemon counts connections
  return base::success();
}

Status NicGroup::join_tree(const nic::Node& node, const nic::GroupAddresses& group) {
  UNISONO_ASSIGN(unisono_nic_row row, nic::make_row(node, group));
  row.id.communicator = group_number(row.id.communicator, NicWay::first_tree,
                                     static_cast<std::uint32_t>(trees().size()));
  UNISONO_ASSIGN(auto member, leads() ? client_->join(row) : client_->share(row));
  std::optional<std::uint32_t> waiter;
  if (options_.place < static_cast<int>(row.waiters)) {
    waiter = static_cast<std::uint32_t>(options_.place);
  }
  return reduction_->ports().add(node, std::move(member), waiter);
}

Status NicGroup::start(const plan::NicCall& call, const void* input, void* output) {
  UNISONO_CHECK(reduction_ != nullptr, "NicGroup::start before join");
  if (failure_) return *failure_;
  is_gathering_ = call.gathers;
  UNISONO_CHECK(!is_gathering_ || gathers(), "NicGroup::start of an allgather it does not do");
  const int ranks = options_.map.given() ? options_.map.ranks() : options_.ranks;
  const auto all_bytes = call.bytes * static_cast<std::size_t>(ranks);
  const Status started =
      is_gathering_ ? allgather_->start({static_cast<const std::byte*>(input), call.bytes},
                                        {static_cast<std::byte*>(output), all_bytes}, call.combine)
                    : reduction_->start(call, input, output);
  return started.ok() ? started : give_up(started.error());
}

base::Result<bool> NicGroup::poll() {
  if (failure_) return *failure_;
  auto done = is_gathering_ ? allgather_->poll() : reduction_->poll();
  if (!done) give_up(done.error());
  return done;
}

Status NicGroup::take() {
  if (failure_) return *failure_;
  if (is_gathering_) return base::success();
  const Status taken = reduction_->take();
  return taken.ok() ? taken : give_up(taken.error());
}

// The leader watches the other hosts and the daemon: while the host waits for them, the leader
// waits as well.
Status NicGroup::repair() {
  if (failure_) return *failure_;
  if (!leads()) return base::success();
  if (const auto lost = client_->lost()) return give_up(*lost);
  const Status asked = is_gathering_ ? allgather_->repair() : reduction_->repair();
  return asked.ok() ? asked : give_up(asked.error());
}

Error NicGroup::give_up(Error why) {
  if (!failure_) failure_ = std::move(why);
  return *failure_;
}

void NicGroup::sleep(std::int64_t limit_ns) {
  if (is_woken()) {
    return is_gathering_ ? allgather_->sleep(limit_ns) : reduction_->ports().sleep(limit_ns);
  }
  std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(limit_ns, nic_patience::kNap)));
}

std::optional<NicRank> NicGroup::mismatching_rank() const {
  if (!is_gathering_) return reduction_->mismatching_rank();
  if (allgather_->mismatching_host() < 0) return std::nullopt;
  return NicRank{allgather_->mismatching_host(), allgather_->mismatching_place()};
}

std::string NicGroup::describe() const {
  return is_gathering_ ? allgather_->describe() : reduction_->describe();
}

}  // namespace unisono::engine
