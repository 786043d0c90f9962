// SPDX-License-Identifier: BSD-3-Clause
#include "select/nic/asking.hpp"

#include <algorithm>

#include "select/nic/tree_choice.hpp"
#include "select/select.hpp"

namespace unisono::select {

// The root is the last of H ranks once in H barriers. Then the question is a further step. In all
// others the last rank has the question already. On the average half of the other ranks come before
// the root and need no doorbell packet. Questions that the root repeats cost no time: nobody waits
// for them. As in split_cost_ns(), the cost of all packets counts where processors are shared.
NicBarrierPrices nic_barrier_prices(const SplitWork& work) {
  const NicCosts& costs = work.costs;
  const double hosts = work.hosts;
  const double question = costs.send + costs.multicast + costs.packet;
  SplitWork vector = work;
  vector.words = 0;
  vector.processors = 1;
  const double all_telling = split_cost_ns(vector, 0);
  const double all_asking =
      all_telling + costs.send + (hosts - 1) * costs.packet - (hosts - 1) / 2 * costs.doorbell;
  vector.processors = work.hosts * work.hosts;  // so many that only the way counts
  const double way = split_cost_ns(vector, 0);
  const double processors = work.processors;
  return {.telling_ns = std::max(way, all_telling / processors),
          .asking_ns = std::max(way + question / hosts, all_asking / processors)};
}

NicBarrierPrices barrier_prices(const topology::HostMap& hosts, const Circumstances& now) {
  const model::Machine& machine = machine_of(now);
  const int count = hosts.hosts();
  return nic_barrier_prices(
      {.hosts = count,
       .processors = now.shared_cores > 0 ? now.shared_cores : count * machine.cores_per_host,
       .fan_in = nic_fan_in(count),
       .costs = NicCosts::of(machine)});
}

}  // namespace unisono::select
