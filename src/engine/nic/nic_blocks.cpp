// SPDX-License-Identifier: BSD-3-Clause
#include "engine/nic/nic_blocks.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "algorithm/algorithm.hpp"
#include "nic/lowering/lower_allgather.hpp"
#include "nic/lowering/lower_doubling.hpp"

namespace unisono::engine {
namespace {

// Allgathers with joined blocks in flight. Their group has 64 blocks for each of twice as many.
constexpr std::uint32_t kJoinedInFlight = 2;

// With blocks of any length.
base::Result<schedule::Schedule> build(const char* name, int host, std::size_t hosts) {
  schedule::Shape shape;
  shape.collective = schedule::Collective::allgather;
  shape.ranks = static_cast<int>(hosts);
  shape.count = 1;
  return algorithm::build(*algorithm::find(shape.collective, name), shape, {}, host);
}

}  // namespace

base::Result<NicBlocks> NicBlocks::join(nic::ServiceClient& client, const unisono_nic_row& asked,
                                        int place) {
  NicBlocks blocks;
  UNISONO_ASSIGN(blocks.member, place == 0 ? client.join(asked) : client.share(asked));
  const auto waiter = static_cast<std::uint32_t>(place);
  if (waiter < blocks.member->row.waiters) {
    UNISONO_ASSIGN(blocks.wakes,
                   nic::WakeRing::open(std::move(blocks.member->wakes.at(waiter)), waiter));
  }
  UNISONO_ASSIGN(blocks.port,
                 nic::AllgatherPort::open(blocks.member->row, blocks.member->mapping.memory()));
  return blocks;
}

base::Result<unisono_nic_row> make_block_row(int host, nic::GroupAddresses group, NicWay way) {
  group.id.communicator = group_number(group.id.communicator, way);
  const char* const name = group.multicast.ipv4 != 0 ? "direct" : "concurrent-broadcast";
  UNISONO_ASSIGN(const auto schedule, build(name, host, group.ranks.size()));
  UNISONO_ASSIGN(const nic::Routes routes, nic::lower_allgather(schedule));
  return nic::make_row(routes, group);
}

// Joined blocks are never longer than a packet, so an allgather is one operation.
base::Result<unisono_nic_row> make_joined_row(int host, nic::GroupAddresses group) {
  group.id.communicator = group_number(group.id.communicator, NicWay::joined);
  group.depth = kJoinedInFlight;
  UNISONO_ASSIGN(const auto schedule, build("bruck", host, group.ranks.size()));
  UNISONO_ASSIGN(const nic::Doubling doubling, nic::lower_doubling(schedule));
  return nic::make_row(doubling, group);
}

}  // namespace unisono::engine
