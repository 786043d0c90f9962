// SPDX-License-Identifier: BSD-3-Clause
// Fills a row; tables.h explains the meaning of each field for the program.
#include "nic/lowering/row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

namespace unisono::nic {
namespace {

// The fields that do not depend on the group's operation.
unisono_nic_row begin_row(int rank, const GroupAddresses& group) {
  unisono_nic_row row = {};
  row.id = group.id;
  row.key = group.key;
  row.rank = static_cast<std::uint32_t>(rank);
  row.depth = 2 * group.depth;
  row.own = group.ranks[static_cast<std::size_t>(rank)];
  row.down = group.multicast;
  row.waiters = group.waiters;
  return row;
}

unisono_nic_message placed(const BlockMessage& message) {
  unisono_nic_message placed = {};
  placed.blocks = message.blocks;
  placed.peer = static_cast<std::uint8_t>(message.peer);
  placed.slot = static_cast<std::uint8_t>(message.slot);
  placed.count = static_cast<std::uint8_t>(std::popcount(message.blocks));
  placed.first = static_cast<std::uint8_t>(std::countr_zero(message.blocks));
  return placed;
}

}  // namespace

base::Result<unisono_nic_row> make_row(const Node& node, const GroupAddresses& group) {
  UNISONO_CHECK(node.ranks == static_cast<int>(group.ranks.size()), "an address for each rank");
  if (node.forwards.size() > UNISONO_NIC_FORWARDS_MAX) {
    return base::Error{base::Code::unsupported,
                       fmt::format("the NIC cannot send the result on from rank {} to {} ranks: it "
                                   "sends at most {} clones",
                                   node.rank, node.forwards.size(), UNISONO_NIC_FORWARDS_MAX)};
  }
  const auto address = [&](int rank) { return group.ranks[static_cast<std::size_t>(rank)]; };
  unisono_nic_row row = begin_row(node.rank, group);
  row.children = static_cast<std::uint32_t>(node.children.size());
  row.first_slot = static_cast<std::uint32_t>(node.first_slot);
  row.own_slot = static_cast<std::uint32_t>(node.own_slot);
  if (node.returns_values) row.flags |= UNISONO_NIC_RETURNS_VALUES;
  if (node.parent < 0) {
    row.flags |= UNISONO_NIC_ROOT;
  } else {
    row.parent = static_cast<std::uint32_t>(node.parent);
    row.up = address(node.parent);
    row.down_source = static_cast<std::uint32_t>(node.down_source);
  }
  for (std::size_t child = 0; child < node.children.size(); ++child) {
    row.child_rank[child] = static_cast<std::uint32_t>(node.children[child]);
    row.child[child] = address(node.children[child]);
  }
  row.forwards = static_cast<std::uint32_t>(node.forwards.size());
  for (std::size_t i = 0; i < node.forwards.size(); ++i) row.forward[i] = address(node.forwards[i]);
  return row;
}

base::Result<unisono_nic_row> make_row(const Routes& routes, const GroupAddresses& group) {
  UNISONO_CHECK(routes.ranks == static_cast<int>(group.ranks.size()), "an address for each rank");
  UNISONO_CHECK(routes.ranks <= UNISONO_NIC_RANKS_MAX, "routes that lower_allgather() made");
  unisono_nic_row row = begin_row(routes.rank, group);
  row.ranks = static_cast<std::uint32_t>(routes.ranks);
  std::ranges::copy(group.ranks, row.at);
  std::vector<std::uint8_t> targets;
  for (int origin = 0; origin < routes.ranks; ++origin) {
    const Route& route = routes.of[static_cast<std::size_t>(origin)];
    const bool to_all = group.multicast.ipv4 != 0 && routes.ranks > 2 &&
                        static_cast<int>(route.targets.size()) == routes.ranks - 1;
    unisono_nic_route& placed = row.route[origin];
    placed.from = static_cast<std::uint8_t>(std::max(route.from, 0));
    placed.first = static_cast<std::uint8_t>(targets.size());
    if (to_all) {
      targets.push_back(UNISONO_NIC_TO_ALL);
    } else {
      for (const int target : route.targets) targets.push_back(static_cast<std::uint8_t>(target));
    }
    placed.targets = static_cast<std::uint8_t>(targets.size() - placed.first);
  }
  if (targets.size() > UNISONO_NIC_TARGETS_MAX) {
    return base::Error{base::Code::unsupported,
                       fmt::format("the NIC of rank {} would send {} packets in an allgather; it "
                                   "sends at most {}",
                                   routes.rank, targets.size(), UNISONO_NIC_TARGETS_MAX)};
  }
  std::ranges::copy(targets, row.target);
  return row;
}

base::Result<unisono_nic_row> make_row(const Doubling& doubling, const GroupAddresses& group) {
  UNISONO_CHECK(doubling.ranks == static_cast<int>(group.ranks.size()), "an address for each rank");
  UNISONO_CHECK(doubling.ranks <= UNISONO_NIC_RANKS_MAX &&
                    doubling.gives.size() <= UNISONO_NIC_MESSAGES_MAX &&
                    doubling.takes.size() <= UNISONO_NIC_MESSAGES_MAX,
                "messages that lower_doubling() made");
  unisono_nic_row row = begin_row(doubling.rank, group);
  row.ranks = static_cast<std::uint32_t>(doubling.ranks);
  row.gives = static_cast<std::uint32_t>(doubling.gives.size());
  row.takes = static_cast<std::uint32_t>(doubling.takes.size());
  row.largest = static_cast<std::uint32_t>(largest_message(doubling));
  std::ranges::copy(group.ranks, row.at);
  std::ranges::transform(doubling.gives, row.give, placed);
  std::ranges::transform(doubling.takes, row.take, placed);
  return row;
}

unisono_nic_address multicast_address(std::uint32_t ipv4, std::uint16_t port) {
  unisono_nic_address address = {};
  std::uint8_t bytes[4];
  std::memcpy(bytes, &ipv4, sizeof bytes);
  const std::uint8_t mac[6] = {0x01,     0x00,    0x5E, static_cast<std::uint8_t>(bytes[1] & 0x7F),
                               bytes[2], bytes[3]};
  std::memcpy(address.mac, mac, sizeof mac);
  address.port = port;
  address.ipv4 = ipv4;
  return address;
}

}  // namespace unisono::nic
