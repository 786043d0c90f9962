// SPDX-License-Identifier: BSD-3-Clause
// The cost of a collective, counted from the schedules of all its ranks: the two columns of the
// table of algorithms, for one shape; and its messages. Pure; any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/schedule.hpp"

namespace unisono::schedule {

struct Cost {
  int steps = 0;              // messages on the longest path
  std::int64_t elements = 0;  // the most that one rank sends; a multicast counts once

  bool operator==(const Cost&) const = default;
};

// set[r] is the schedule of rank r. The schedules must terminate (check/); others stop the process.
Cost cost(std::span<const Schedule> set);
// The same from the schedule of any rank, if all are alike but for the peers. The slot to which a
// rank sends has the number of the slot for which it waits itself.
Cost cost_of_alike(const Schedule& any);

// The part of the cost between hosts (Shape::hosts); zero if there is one host.
struct CostBetweenHosts {
  int steps = 0;              // messages of all ranks, one for each target of a multicast
  std::int64_t messages = 0;  // the same, but a multicast counts once
  std::int64_t sends = 0;     // the same, where a multicast counts once
  std::int64_t elements = 0;  // in all of these messages

  bool operator==(const CostBetweenHosts&) const = default;
};
CostBetweenHosts cost_between_hosts(std::span<const Schedule> set);
// As cost_of_alike(), if each rank is on a host of its own.
CostBetweenHosts cost_between_hosts_of_alike(const Schedule& any);

struct Message {
  int source = -1, target = -1;
  int step = 0;  // messages on the longest path that ends with it
  std::int64_t elements = 0;

  auto operator<=>(const Message&) const = default;
};

// Sorted by step, then by source and target; one for each target of a multicast. The schedules must
// terminate, as for cost().
std::vector<Message> messages(std::span<const Schedule> set);

}  // namespace unisono::schedule
