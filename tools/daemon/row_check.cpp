// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/row_check.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "nic/loader/interface.hpp"
#include "nic/lowering/row.hpp"

namespace unisono::daemon {
namespace {

using base::Code;
using base::Error;
using base::Status;

constexpr std::uint32_t kKnownFlags = UNISONO_NIC_ROOT | UNISONO_NIC_RETURNS_VALUES;
// Trees of clones have a few; this limit, not the tables, bounds the packets made from one packet.
constexpr std::uint32_t kMostForwards = 64;
constexpr std::uint16_t kFirstOpenPort = 1024;  // lower ports need a privilege

Error refusal(const std::string& why) {
  return {Code::argument, fmt::format("unisonod: a group that {}", why)};
}

Status check_limits(const unisono_nic_row& row) {
  if (row.children > UNISONO_NIC_CHILDREN_MAX) {
    return refusal(fmt::format("has {} children, at most {} are possible", row.children,
                               UNISONO_NIC_CHILDREN_MAX));
  }
  if (row.forwards > kMostForwards) {
    return refusal(fmt::format("sends results on to {} ranks, at most {} are possible",
                               row.forwards, kMostForwards));
  }
  if (!std::has_single_bit(row.depth) || row.depth < 2 || row.depth > UNISONO_NIC_DEPTH_MAX) {
    return refusal(fmt::format("has a depth of {}; it is a power of two from 2 to {}", row.depth,
                               UNISONO_NIC_DEPTH_MAX));
  }
  if (row.waiters > UNISONO_NIC_WAITERS_MAX) {
    return refusal(fmt::format("has {} waiters, at most {} are possible", row.waiters,
                               UNISONO_NIC_WAITERS_MAX));
  }
  if (row.ranks == 0 && (row.gives != 0 || row.takes != 0)) {
    return refusal("is a tree, and has messages of an allgather");
  }
  if ((row.flags & ~kKnownFlags) != 0) {
    return refusal(fmt::format("has unknown flags ({:#x})", row.flags));
  }
  return base::success();
}

Status check_routes(const unisono_nic_row& row) {
  if (row.ranks > UNISONO_NIC_RANKS_MAX || row.rank >= row.ranks) {
    return refusal(fmt::format("is an allgather of {} ranks for rank {}; at most {} are possible",
                               row.ranks, row.rank, UNISONO_NIC_RANKS_MAX));
  }
  if (row.children != 0 || row.forwards != 0 || row.flags != 0) {
    return refusal("is an allgather and a tree");
  }
  for (std::uint32_t origin = 0; origin < row.ranks; ++origin) {
    const unisono_nic_route& route = row.route[origin];
    const bool fits =
        route.from < row.ranks && route.first + route.targets <= UNISONO_NIC_TARGETS_MAX;
    const auto targets =
        fits ? std::span(row.target + route.first, route.targets) : std::span<const std::uint8_t>();
    const bool known = std::ranges::all_of(targets, [&row](std::uint8_t target) {
      return target < row.ranks || target == UNISONO_NIC_TO_ALL;
    });
    if (!fits || !known) {
      return refusal(fmt::format("has a route for rank {} that leaves its tables", origin));
    }
  }
  return base::success();
}

// A sent message contains the own block, and a received one does not.
bool fits(const unisono_nic_message& message, const unisono_nic_row& row, bool goes) {
  const bool has_own = (message.blocks >> row.rank & 1) != 0;
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - row.ranks);
  return message.peer < row.ranks && message.peer != row.rank &&
         message.slot < UNISONO_NIC_MESSAGES_MAX && message.blocks != 0 &&
         (message.blocks & ~all) == 0 && message.count == std::popcount(message.blocks) &&
         message.count <= row.largest && message.first == std::countr_zero(message.blocks) &&
         has_own == goes;
}

Status check_messages(const unisono_nic_row& row) {
  if (row.gives == 0 && row.takes == 0 && row.largest == 0) return base::success();
  if (row.gives == 0 || row.gives > UNISONO_NIC_MESSAGES_MAX ||
      row.takes > UNISONO_NIC_MESSAGES_MAX || row.largest == 0 || row.largest > row.ranks) {
    return refusal(
        fmt::format("sends {} and takes {} messages of up to {} blocks; 1 to {} of up "
                    "to {} blocks are possible",
                    row.gives, row.takes, row.largest, UNISONO_NIC_MESSAGES_MAX, row.ranks));
  }
  for (std::uint32_t number = 0; number < std::max(row.gives, row.takes); ++number) {
    const bool given = number >= row.gives || fits(row.give[number], row, true);
    const bool taken = number >= row.takes || fits(row.take[number], row, false);
    if (!given || !taken) {
      return refusal(fmt::format("has a message {} that leaves its tables", number));
    }
  }
  return base::success();
}

Status check_port(const unisono_nic_address& target) {
  if (ntohs(target.port) >= kFirstOpenPort) return base::success();
  return refusal(fmt::format("sends to port {}; those below {} are the system's",
                             ntohs(target.port), kFirstOpenPort));
}

// A host of the network that is served.
Status check_neighbour(const unisono_nic_address& target, const nic::Served& served) {
  UNISONO_TRY(check_port(target));
  const bool near = ((target.ipv4 ^ served.own.ipv4) & served.mask) == 0;
  const bool one_host = (target.mac[0] & 1) == 0;
  const bool broadcast = (target.ipv4 | served.mask) == 0xFFFFFFFF;
  if (near && one_host && !broadcast) return base::success();
  return refusal(fmt::format("sends to {} ({}), which is no host of the network of {} on {}",
                             nic::ipv4_text(target.ipv4), nic::mac_text(target.mac),
                             nic::ipv4_text(served.own.ipv4), served.interface));
}

// 239.0.0.0/8: multicast that networks keep to themselves.
Status check_multicast(const unisono_nic_address& target) {
  UNISONO_TRY(check_port(target));
  const unisono_nic_address expected = nic::multicast_address(target.ipv4, target.port);
  const bool local = ntohl(target.ipv4) >> 24 == 239;
  if (local && std::memcmp(expected.mac, target.mac, sizeof target.mac) == 0) {
    return base::success();
  }
  return refusal(
      fmt::format("multicasts to {} ({}); it may to 239.0.0.0/8, by the Ethernet "
                  "address that belongs to it",
                  nic::ipv4_text(target.ipv4), nic::mac_text(target.mac)));
}

bool has_multicast(const unisono_nic_row& row) {
  const unisono_nic_address none = {};
  return std::memcmp(&row.down, &none, sizeof none) != 0;
}

// A packet for several hosts goes to each once, and not to this host.
Status check_different(std::span<const unisono_nic_address> targets, const nic::Served& served,
                       const char* what) {
  std::vector<std::uint32_t> known = {served.own.ipv4};
  for (const unisono_nic_address& target : targets) {
    if (std::ranges::find(known, target.ipv4) != known.end()) {
      return refusal(fmt::format("{} {}, a host that is named twice or is this one", what,
                                 nic::ipv4_text(target.ipv4)));
    }
    known.push_back(target.ipv4);
  }
  return base::success();
}

// In an allgather, each rank is on its own host, and a block is sent to a rank once.
Status check_targets(const unisono_nic_row& row) {
  std::vector<std::uint32_t> hosts;
  for (const unisono_nic_address& target : std::span(row.at, row.ranks)) {
    if (std::ranges::find(hosts, target.ipv4) != hosts.end()) {
      return refusal(fmt::format("has two ranks at {}", nic::ipv4_text(target.ipv4)));
    }
    hosts.push_back(target.ipv4);
  }
  for (std::uint32_t origin = 0; origin < row.ranks; ++origin) {
    const unisono_nic_route& route = row.route[origin];
    std::vector<std::uint8_t> targets(row.target + route.first,
                                      row.target + route.first + route.targets);
    std::ranges::sort(targets);
    const bool to_all = !targets.empty() && targets.back() == UNISONO_NIC_TO_ALL;
    if (std::ranges::adjacent_find(targets) != targets.end() || (to_all && targets.size() != 1) ||
        std::ranges::find(targets, row.rank) != targets.end()) {
      return refusal(fmt::format("sends the block of rank {} somewhere twice", origin));
    }
  }
  return base::success();
}

// Each rank may be queried and answered.
Status check_ranks(const unisono_nic_row& row, const nic::Served& served) {
  UNISONO_TRY(check_targets(row));
  for (const unisono_nic_address& target : std::span(row.at, row.ranks)) {
    UNISONO_TRY(check_neighbour(target, served));
  }
  if (has_multicast(row)) return check_multicast(row.down);
  for (const unisono_nic_route& route : std::span(row.route, row.ranks)) {
    const auto targets = std::span(row.target + route.first, route.targets);
    if (std::ranges::find(targets, UNISONO_NIC_TO_ALL) != targets.end()) {
      return refusal("is an allgather that multicasts, and has no multicast address");
    }
  }
  return base::success();
}

Status check_targets(const unisono_nic_row& row, const nic::Served& served) {
  const bool root = (row.flags & UNISONO_NIC_ROOT) != 0;
  if (!root) UNISONO_TRY(check_neighbour(row.up, served));
  for (const unisono_nic_address& target : std::span(row.forward, row.forwards)) {
    UNISONO_TRY(check_neighbour(target, served));
  }
  // Questions go to children.
  for (const unisono_nic_address& target : std::span(row.child, row.children)) {
    UNISONO_TRY(check_neighbour(target, served));
  }
  UNISONO_TRY(check_different({row.forward, row.forwards}, served, "sends results on to"));
  UNISONO_TRY(check_different({row.child, row.children}, served, "has the child"));
  const bool multicasts = has_multicast(row);
  if (multicasts) UNISONO_TRY(check_multicast(row.down));
  if (root && !multicasts && row.forwards == 0) {
    return refusal("is a root and sends its results to nobody");
  }
  return base::success();
}

}  // namespace

base::Result<unisono_nic_row> checked_row(const unisono_nic_row& asked, const nic::Served& served) {
  UNISONO_TRY(check_limits(asked));
  if (asked.ranks != 0) {
    UNISONO_TRY(check_routes(asked));
    UNISONO_TRY(check_messages(asked));
    UNISONO_TRY(check_ranks(asked, served));
  } else {
    UNISONO_TRY(check_targets(asked, served));
  }
  unisono_nic_row row = asked;
  row.own = served.own;
  row.loss = 0;
  return row;
}

}  // namespace unisono::daemon
