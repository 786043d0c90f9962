// SPDX-License-Identifier: BSD-3-Clause
// When a barrier in the NIC path asks: where hosts share processors and a doorbell packet costs
// more than twice what a question costs a host; never where each host has a processor.
#include "select/nic/asking.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/default_machine.hpp"
#include "select/nic/by_nic.hpp"
#include "select/select.hpp"

namespace unisono::select::test::asking_test {
namespace {

SplitWork work_of(int hosts, int processors, double doorbell_ns) {
  SplitWork work = {.hosts = hosts,
                    .processors = processors,
                    .fan_in = std::min(7, hosts - 1),
                    .costs = NicCosts::of(model::default_machine())};
  work.costs.doorbell = doorbell_ns;
  return work;
}

TEST(NicBarrier, NeverAsksWhereHostsHaveProcessors) {
  for (const int hosts : {2, 3, 8, 64, 512}) {
    for (const double doorbell_ns : {0.0, 2500.0, 20'000.0, 1e6}) {
      const auto prices = nic_barrier_prices(work_of(hosts, 2 * hosts, doorbell_ns));
      EXPECT_GT(prices.asking_ns, prices.telling_ns) << hosts << " hosts, " << doorbell_ns;
      EXPECT_FALSE(prices.asks());
    }
  }
}

TEST(NicBarrier, AsksWhereDoorbellPacketsOfManyHostsShareProcessors) {
  const double packet_ns = NicCosts::of(model::default_machine()).packet;
  for (const int hosts : {16, 64}) {
    EXPECT_FALSE(nic_barrier_prices(work_of(hosts, 2, 2 * packet_ns)).asks()) << hosts;
    EXPECT_TRUE(nic_barrier_prices(work_of(hosts, 2, 4 * packet_ns)).asks()) << hosts;
  }
}

struct Wanted {
  std::string algorithm;  // UNISONO_ALGORITHM
  bool multicasts = true;
  int ranks = 16;
  topology::HostMap hosts = topology::HostMap::apart(16);
  model::Machine machine = model::default_machine();
};

Choice choice_of(const Wanted& wanted) {
  schedule::Shape shape;
  shape.collective = schedule::Collective::barrier;
  shape.ranks = wanted.ranks;
  shape.hosts = wanted.hosts;
  Circumstances now;
  now.shared_cores = 2;
  now.nic_multicasts = wanted.multicasts;
  now.nic = nic::Preferences{};
  now.machine = &wanted.machine;
  if (wanted.algorithm.empty()) return choose(shape, now);
  const auto overrides = parse_overrides(wanted.algorithm);
  EXPECT_TRUE(overrides.ok()) << overrides.error().message;
  return choose(shape, now, *overrides);
}

TEST(NicBarrier, AsksIfTheUserWantsIt) {
  EXPECT_FALSE(choice_of({}).nic_asks);
  EXPECT_EQ(choice_of({}).engine, EngineKind::nic);
  const Choice asked = choice_of({.algorithm = "barrier:test-and-set"});
  EXPECT_TRUE(asked.nic_asks);
  EXPECT_EQ(asked.engine, EngineKind::nic);
  const Choice other = choice_of({.algorithm = "barrier:gather-release"});
  EXPECT_FALSE(other.nic_asks);
  EXPECT_NE(other.engine, EngineKind::nic) << "the user's algorithm runs in the host engine";
}

TEST(NicBarrier, AsksOnAMachineWhereThatIsCheaper) {
  Wanted wanted;
  for (model::PathParameters& path : wanted.machine.paths) {
    if (path.level != model::Level::nic) continue;
    for (auto& each : path.start_up) each.value.number *= 4;
  }
  EXPECT_TRUE(choice_of(wanted).nic_asks);
  wanted.algorithm = "barrier:^test-and-set";
  EXPECT_FALSE(choice_of(wanted).nic_asks) << "the user does not want it";
  EXPECT_EQ(choice_of(wanted).engine, EngineKind::nic);
  wanted.algorithm.clear();
  wanted.ranks = 32;
  std::vector<int> host_of;
  for (int rank = 0; rank < 32; ++rank) host_of.push_back(rank / 2);
  wanted.hosts = topology::HostMap::of_labels(host_of);
  EXPECT_TRUE(choice_of(wanted).nic_asks) << "two ranks on each host";
  wanted.multicasts = false;
  EXPECT_FALSE(choice_of(wanted).nic_asks) << "questions go by multicast";
  wanted.algorithm = "barrier:test-and-set";
  EXPECT_FALSE(choice_of(wanted).nic_asks);
}

}  // namespace
}  // namespace unisono::select::test::asking_test
