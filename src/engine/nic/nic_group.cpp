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
#include "select/nic/pays.hpp"
#include "select/nic/tree_choice.hpp"

namespace unisono::engine {
namespace {

using base::Error;
using base::Status;

// If a group joins blocks of some length, it joins these.
constexpr std::size_t kShortestBlock = sizeof(std::uint64_t);

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

// Each operation in flight has memory of its own.
std::unique_ptr<HostReduction> host_reduction_of(const NicGroupOptions& options,
                                                 std::size_t flight) {
  if (options.places <= 1) return nullptr;
  const auto bytes = static_cast<std::size_t>(HostReduction::memory_bytes(options.places));
  return std::make_unique<HostReduction>(options.memory + flight * bytes, options.place,
                                         options.places, select::nic_host_fan_in(options.places));
}

nic_patience::BackOff::Bounds back_off_of(const model::Machine& machine) {
  return nic_patience::BackOff::Bounds::of(
      model::constant_of(machine, model::Constant::nic_back_off).ns(),
      model::constant_of(machine, model::Constant::nic_back_off_most).ns());
}

// One more for acknowledgements.
std::int64_t host_reductions_bytes(int places) {
  return static_cast<std::int64_t>(nic::kInFlightMax + 1) * HostReduction::memory_bytes(places);
}

// Whether an acknowledgement begins with this call, after so many multicasts of roots in a row. All
// ranks decide alike, because they have started the same operations.
bool completes_row(const plan::NicCall& call, std::uint64_t casts_before) {
  return call.sender >= 0 && casts_before + 1 == NicBroadcast::kInARow;
}

// Its digest is that of the call beside which it starts.
plan::NicCall barrier_beside(const plan::NicCall& call) {
  plan::NicCall barrier;
  barrier.combine = UNISONO_NIC_NOTHING | (call.combine & ~UNISONO_NIC_COMBINE_MASK);
  barrier.takes = false;
  return barrier;
}

}  // namespace

std::int64_t NicGroup::memory_bytes(int places) {
  return host_reductions_bytes(places) + nic::HostBlocks::memory_bytes(places);
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
  ranks_ = map.ranks();
  splits_ = select::choose_splits(hosts, map.are_alone(), options_.multicasts, machine);
  UNISONO_ASSIGN(const auto nodes,
                 nodes_of(options_.rank, options_.ranks, splits_.most(), options_.multicasts));
  std::vector<unisono_nic_address> addresses;
  for (const nic::Capabilities& host : hosts) addresses.push_back(host.address);
  const nic::GroupAddresses group = addresses_of(options_, addresses);
  for (const nic::Node& node : nodes) UNISONO_TRY(join_tree(node, group));
  if (options_.ranks <= UNISONO_NIC_RANKS_MAX) {
    std::byte* const blocks = options_.memory == nullptr
                                  ? nullptr
                                  : options_.memory + host_reductions_bytes(options_.places);
    const bool joins =
        plan::gather_off_trees({.ranks = map.ranks(), .hosts = options_.ranks, .machine = &machine},
                               kShortestBlock)
            .joins;
    UNISONO_ASSIGN(
        allgather_,
        NicAllgather::join(*client_, group, {map, options_.rank, options_.place, blocks}, joins));
  }
  if (select::nic_root_multicasts(machine, hosts.front().preferences.rooted, options_.ranks,
                                  options_.multicasts)) {
    UNISONO_ASSIGN(broadcast_,
                   NicBroadcast::join(*client_, group, {map, options_.rank, options_.place}));
  }
  const NicReduction::Rank own = {options_.rank, leads(), back_off_of(machine)};
  const auto on_trees = [&](std::size_t flight) {
    return std::make_unique<NicReduction>(own, ports_, splits_,
                                          host_reduction_of(options_, flight));
  };
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    flights_[i] = std::make_unique<NicFlight>(on_trees(i), allgather_.get(), broadcast_.get());
  }
  if (broadcast_ != nullptr) {
    acknowledgement_ = std::make_unique<NicFlight>(on_trees(flights_.size()), nullptr, nullptr);
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
  return ports_.add(node, std::move(member), waiter);
}

plan::NicCall NicGroup::with_way(plan::NicCall call) const {
  if (broadcast_ == nullptr || call.bytes > nic::kPacketBytes) call.sender = -1;
  return call;
}

// After a failure start() returns it.
bool NicGroup::may_start(const plan::NicCall& call) {
  collect_acknowledgement();
  if (failure_) return true;
  if (begun_ - oldest_ == flights_.size()) return false;
  const plan::NicCall own = with_way(call);
  if (!at(begun_).has_room(own)) return false;
  if (!completes_row(own, casts_in_a_row_)) return true;
  return !acknowledges() && acknowledgement_->has_room(barrier_beside(own));
}

// A rank that contributes to operation s has taken the results of those before s - 3, because a
// later one uses the same flight. So all ranks have read the blocks of these when s is done.
void NicGroup::count_casts(NicFlight& flight, bool is_casting) {
  if (broadcast_ == nullptr) return;
  flight.casts_before_ = broadcast_->started();
  flight.casts_read_ = is_casting ? 0 : at(flight.number_ + 1).casts_before_;
  casts_in_a_row_ = is_casting ? casts_in_a_row_ + 1 : 0;
}

// Beside the operation that has just started. An error is one of those after it.
Status NicGroup::acknowledge(const plan::NicCall& after) {
  casts_in_a_row_ = 0;
  acknowledgement_->number_ = begun_;
  acknowledgement_->casts_read_ = at(begun_).casts_before_;
  return acknowledgement_->start(barrier_beside(after), nullptr, nullptr, ranks_);
}

void NicGroup::collect_acknowledgement() {
  if (!acknowledges() || failure_) return;
  const auto done = acknowledgement_->poll();
  if (done && !*done) return;
  acknowledgement_->is_under_way_ = false;
  const Status taken = done ? acknowledgement_->take() : Status(done.error());
  if (!taken) {
    fail(*acknowledgement_, taken.error());
    return;
  }
  broadcast_->note_read_by_all(acknowledgement_->casts_read_);
}

NicFlight& NicGroup::oldest() {
  if (oldest_ < begun_) return at(oldest_);
  return acknowledges() ? *acknowledgement_ : at(begun_ - 1);
}

base::Result<NicFlight*> NicGroup::start(const plan::NicCall& call, const void* input,
                                         void* output) {
  UNISONO_CHECK(flights_.front() != nullptr, "NicGroup::start before join");
  UNISONO_CHECK(may_start(call), "NicGroup::start without room");
  if (failure_) return *failure_;
  const std::uint64_t number = begun_++;
  NicFlight& flight = at(number);
  delay_.restart();
  const plan::NicCall own = with_way(call);
  const bool acknowledged = completes_row(own, casts_in_a_row_);
  flight.number_ = number;
  count_casts(flight, own.sender >= 0);
  const Status started = flight.start(own, input, output, ranks_);
  if (!started) fail(flight, started.error());
  if (acknowledged && started) {
    if (const Status asked = acknowledge(own); !asked) fail(*acknowledgement_, asked.error());
  }
  return &flight;
}

base::Result<bool> NicGroup::poll(NicFlight& flight) {
  if (failure_ && flight.number() >= failed_from_) return *failure_;
  auto done = flight.poll();
  if (!done) return fail(flight, done.error());
  return done;
}

Status NicGroup::take(NicFlight& flight) {
  if (failure_ && flight.number() >= failed_from_) return *failure_;
  if (const Status taken = flight.take(); !taken) return fail(flight, taken.error());
  flight.is_under_way_ = false;
  if (broadcast_ != nullptr) broadcast_->note_read_by_all(flight.casts_read_);
  while (oldest_ < begun_ && !at(oldest_).is_under_way_) ++oldest_;
  return base::success();
}

// The leader watches the other hosts and the daemon: while the host waits for them, the leader
// waits as well. While a rank of this host has not arrived at an operation, nothing of it is lost.
// A rank may wait for a root's block, or for room, while the leader has not called. So it asks for
// blocks and acknowledgements itself.
Status NicGroup::repair() {
  collect_acknowledgement();
  if (failure_ && failed_from_ <= oldest_) return *failure_;
  if (leads()) {
    if (const auto lost = client_->lost()) return give_up(*lost);
  }
  nic::TreePorts::Ends ends = ports_.ends();
  bool gathers = false;
  bool casts = false;
  for (std::uint64_t number = begun_; number-- > oldest_;) {
    const NicFlight& flight = at(number);
    if (flight.awaits_blocks()) {
      (flight.is_casting() ? casts : gathers) |= flight.is_under_way_ && flight.is_host_complete();
    } else if (!flight.is_host_complete()) {
      flight.reduction_->vector().limit(ends);
    }
  }
  if (casts) {
    if (const Status requested = broadcast_->repair(); !requested)
      return give_up(requested.error());
  }
  if (!leads() && !acknowledges()) return base::success();
  if (acknowledges() && !acknowledgement_->is_host_complete()) {
    acknowledgement_->reduction_->vector().limit(ends);
  }
  const auto asked = ports_.repair(ends, base::now_ns(), delay_.ns());
  if (!asked) return give_up(asked.error());
  if (*asked != 0) delay_.lengthen();
  if (!leads() || !gathers) return base::success();
  const Status requested = allgather_->repair();
  return requested.ok() ? requested : give_up(requested.error());
}

Error NicGroup::give_up(Error why) {
  if (failure_ && failed_from_ == 0) return *failure_;
  failed_from_ = 0;
  mismatching_rank_.reset();
  failure_ = std::move(why);
  return *failure_;
}

// An operation before one that has failed may still end well.
Error NicGroup::fail(const NicFlight& flight, Error why) {
  if (!failure_ || flight.number() < failed_from_) {
    mismatching_rank_ = why.code == base::Code::mismatch ? flight.mismatching_rank() : std::nullopt;
    failure_ = std::move(why);
    failed_from_ = flight.number();
  }
  return *failure_;
}

void NicGroup::sleep(NicFlight& flight, std::int64_t limit_ns) {
  limit_ns = std::min(limit_ns, flight.question_in_ns(base::now_ns()));
  if (is_woken()) return flight.sleep(limit_ns);
  std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(limit_ns, nic_patience::kPauseNs)));
}

bool NicGroup::has_awaited_blocks_lately() const {
  return std::ranges::any_of(flights_, [](const auto& each) { return each->awaits_blocks(); });
}

bool NicGroup::has_cast_lately() const {
  return std::ranges::any_of(flights_, [](const auto& each) { return each->is_casting(); });
}

}  // namespace unisono::engine
