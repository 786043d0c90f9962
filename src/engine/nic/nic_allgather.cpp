// SPDX-License-Identifier: BSD-3-Clause
// Each rank multicasts its block where the network carries that: one packet beats log2 P steps.
// Elsewhere hosts forward blocks to one another.
#include "engine/nic/nic_allgather.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "algorithm/algorithm.hpp"
#include "base/clock.hpp"
#include "engine/nic/group_number.hpp"
#include "engine/nic/nic_patience.hpp"
#include "nic/lowering/lower_allgather.hpp"
#include "nic/lowering/lower_doubling.hpp"
#include "select/nic/pays.hpp"

namespace unisono::engine {
namespace {

using base::Status;

constexpr std::size_t kWord = sizeof(std::uint64_t);  // the shortest block that is not empty

schedule::Shape any_length(int ranks) {
  schedule::Shape shape;
  shape.collective = schedule::Collective::allgather;
  shape.ranks = ranks;
  shape.count = 1;
  return shape;
}

base::Result<schedule::Schedule> build(const char* name, int rank, int ranks) {
  const schedule::Shape shape = any_length(ranks);
  return algorithm::build(*algorithm::find(shape.collective, name), shape, {}, rank);
}

base::Result<unisono_nic_row> singly_row(int rank, nic::GroupAddresses group) {
  group.id.communicator = group_number(group.id.communicator, NicWay::singly);
  const char* const name = group.multicast.ipv4 != 0 ? "direct" : "concurrent-broadcast";
  UNISONO_ASSIGN(const auto schedule, build(name, rank, static_cast<int>(group.ranks.size())));
  UNISONO_ASSIGN(const nic::Routes routes, nic::lower_allgather(schedule));
  return nic::make_row(routes, group);
}

// One operation at a time: joined blocks are never longer than a packet.
base::Result<unisono_nic_row> joined_row(int rank, nic::GroupAddresses group) {
  group.id.communicator = group_number(group.id.communicator, NicWay::joined);
  group.depth = 1;
  UNISONO_ASSIGN(const auto schedule, build("bruck", rank, static_cast<int>(group.ranks.size())));
  UNISONO_ASSIGN(const nic::Doubling doubling, nic::lower_doubling(schedule));
  return nic::make_row(doubling, group);
}

}  // namespace

base::Result<std::unique_ptr<NicAllgather::Way>> NicAllgather::join_way(
    nic::ServiceClient& client, const unisono_nic_row& asked, const Rank& rank) {
  UNISONO_ASSIGN(auto member, rank.place == 0 ? client.join(asked) : client.share(asked));
  const auto waiter = static_cast<std::uint32_t>(rank.place);
  std::unique_ptr<nic::WakeRing> wakes;
  if (waiter < member->row.waiters) {
    UNISONO_ASSIGN(wakes, nic::WakeRing::open(std::move(member->wakes.at(waiter)), waiter));
  }
  UNISONO_ASSIGN(auto port, nic::AllgatherPort::open(member->row, member->mapping.memory()));
  return std::make_unique<Way>(std::move(member), std::move(wakes), std::move(port), rank);
}

std::unique_ptr<nic::HostBlocks> NicAllgather::blocks_of_host(const Rank& rank) {
  const auto places = static_cast<int>(rank.ranks.members(rank.host).size());
  if (places == 1) return nullptr;
  return std::make_unique<nic::HostBlocks>(rank.memory, rank.place, places);
}

base::Result<std::unique_ptr<NicAllgather>> NicAllgather::join(nic::ServiceClient& client,
                                                               const nic::GroupAddresses& group,
                                                               const Rank& rank,
                                                               const select::NicBlockCosts& costs) {
  UNISONO_ASSIGN(const unisono_nic_row singly, singly_row(rank.host, group));
  UNISONO_ASSIGN(auto one_by_one, join_way(client, singly, rank));
  std::unique_ptr<Way> by_doubling;
  if (rank.ranks.are_alone() &&
      select::nic_joins_blocks(costs, static_cast<int>(group.ranks.size()), kWord)) {
    UNISONO_ASSIGN(const unisono_nic_row joined, joined_row(rank.host, group));
    UNISONO_ASSIGN(by_doubling, join_way(client, joined, rank));
  }
  return std::unique_ptr<NicAllgather>(
      new NicAllgather(std::move(one_by_one), std::move(by_doubling), costs));
}

Status NicAllgather::start(std::span<const std::byte> block, std::span<std::byte> result,
                           std::uint32_t mark) {
  delay_.restart();
  const bool joins =
      joined_ != nullptr && select::nic_joins_blocks(costs_, singly_->port->ranks(), block.size());
  way_ = joins ? joined_.get() : singly_.get();
  way_->segments.begin(block, result, mark);
  const auto given = poll();
  return given.ok() ? base::success() : Status(given.error());
}

// While a rank of this host has not given its part, nothing is lost.
Status NicAllgather::repair() {
  if (!is_host_complete()) return base::success();
  UNISONO_ASSIGN(const int asked, way_->port->repair(base::now_ns(), delay_.ns()));
  if (asked != 0) delay_.lengthen();
  return base::success();
}

std::uint64_t NicAllgather::missing() const {
  return (~std::uint64_t{0} >> (64 - way_->port->ranks())) & ~way_->segments.arrived();
}

bool NicAllgather::arm() {
  armed_ = way_->segments.last_awaited();
  return way_->port->arm(*way_->wakes, armed_);
}

void NicAllgather::sleep(std::int64_t limit_ns) {
  if (arm()) way_->wakes->sleep(limit_ns);
  disarm();
}

std::string NicAllgather::describe() const {
  std::string text = fmt::format("an allgather on host {} ", way_->port->rank());
  if (!is_host_complete()) return text + "waits for other ranks of this host";
  text += "lacks the blocks of hosts";
  for (int host = 0; host < way_->port->ranks(); ++host) {
    if ((missing() >> host & 1) != 0) text += fmt::format(" {}", host);
  }
  if (way_ == joined_.get()) text += ", which may wait for each other";
  return text;
}

}  // namespace unisono::engine
