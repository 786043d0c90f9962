// SPDX-License-Identifier: BSD-3-Clause
// Jobs on so many hosts that the tree has inner nodes. Contributions pass through the programs of
// their hosts, whose processes sleep. One set of hosts with their daemons serves all tests.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nic/job/many_hosts.hpp"
#include "nic/job/shared_counts.hpp"

namespace unisono::harness::tree_job_test {
namespace {

class NicTreeJob : public NicManyHosts<16> {
 protected:
  // Sums of all lengths that go by it, from all ranks, each other one on its own.
  static void check_sums(const NicRank& self) {
    for (const std::int64_t count : {1, 2, 174, 175, 176, 350, 700}) {
      std::vector<std::int64_t> given(static_cast<std::size_t>(count));
      for (std::int64_t i = 0; i < count; ++i) given[static_cast<std::size_t>(i)] = self.rank + i;
      std::vector<std::int64_t> sums(given.size());
      ASSERT_TRUE(succeeded(unisono_allreduce(given.data(), sums.data(), count, UNISONO_INT64,
                                              UNISONO_SUM, self.world)));
      const std::int64_t ranks = self.ranks;
      for (std::int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(sums[static_cast<std::size_t>(i)], ranks * (ranks - 1) / 2 + ranks * i);
      }
    }
  }

  // The root is late. The contributions of all others have passed through the inner nodes, without
  // waking a process; its result wakes each once.
  void expect_inner_nodes_sleep();
  // Leaves and root are late. While the leaves' contributions pass, the kernel gives no core to any
  // thread of the inner nodes' processes, which nothing holds back.
  void expect_inner_nodes_untouched();
};

// As often as it is told.
void sum_when_told(const NicRank& self) {
  self.line.say("ready");
  while (self.line.hear() == "go") {
    std::int64_t sum = self.rank;
    ASSERT_TRUE(succeeded(
        unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world)));
    ASSERT_EQ(sum, self.ranks * (self.ranks - 1) / 2);
    self.line.say("has the result");
  }
  leave(self);
}

// A sleeping rank looks for lost packets every 10 to 50 ms, and another thread of it keeps the job
// alive. So a host is observed again until that has not come in between.
void NicTreeJob::expect_inner_nodes_untouched() {
  constexpr int kMostRounds = 500;
  start_daemons();
  auto processes = start_job(sum_when_told);
  const auto line_of = [&](int host) -> const Line& {
    return processes[static_cast<std::size_t>(host)].line();
  };
  for (const int host : host_of_) ASSERT_EQ(line_of(host).hear(), "ready");
  const std::set<int> inner = inner_nodes();
  EXPECT_FALSE(inner.empty());
  std::set<int> touched = inner;  // in all rounds
  for (int round = 0; round < kMostRounds && !touched.empty(); ++round) {
    std::map<int, std::uint64_t> switches, sent_up;
    for (const int host : inner) line_of(host).say("go");
    for (const int host : inner) {
      while (!nic::test::has_armed_waiter(daemon_on(host))) std::this_thread::yield();
      sent_up[host] = counted(host, UNISONO_NIC_SENT_UP);
    }
    const auto process_of = [&](int host) {
      return nic::test::child_of(processes[static_cast<std::size_t>(host)].pid());
    };
    for (const int host : touched) {
      switches[host] = nic::test::context_switches_of(process_of(host));
    }
    for (const int host : host_of_) {
      if (host != 0 && !inner.contains(host)) line_of(host).say("go");
    }
    for (const int host : inner) {
      while (counted(host, UNISONO_NIC_SENT_UP) == sent_up[host]) std::this_thread::yield();
    }
    for (const auto& [host, before] : switches) {
      if (nic::test::context_switches_of(process_of(host)) == before) touched.erase(host);
    }
    line_of(0).say("go");
    for (const int host : host_of_) ASSERT_EQ(line_of(host).hear(), "has the result");
  }
  EXPECT_EQ(touched, std::set<int>()) << "their processes run whenever contributions pass";
  for (const int host : host_of_) line_of(host).say("leave");
  expect_all_clean(processes);
}

void NicTreeJob::expect_inner_nodes_sleep() {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_sums(self));
    self.line.say("ready");
    self.line.hear();
    if (self.rank == 0) self.line.hear();
    std::int64_t sum = self.rank;
    ASSERT_TRUE(succeeded(
        unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world)));
    EXPECT_EQ(sum, self.ranks * (self.ranks - 1) / 2);
    self.line.say("has the result");
    self.line.hear();
    leave(self);
  });
  const auto process = [&](int host) -> const HostProcess& {
    return processes[static_cast<std::size_t>(host)];
  };
  for (const int host : host_of_) ASSERT_EQ(process(host).line().hear(), "ready");
  const std::set<int> inner = inner_nodes();
  EXPECT_FALSE(inner.empty());
  std::vector<std::uint64_t> woken, sent_up;
  for (const int host : host_of_) {
    woken.push_back(counted(host, UNISONO_NIC_WOKEN));
    sent_up.push_back(counted(host, UNISONO_NIC_SENT_UP));
    process(host).line().say("go");
  }
  const auto at = [](const std::vector<std::uint64_t>& counts, int host) {
    return counts[static_cast<std::size_t>(host)];
  };
  std::map<int, pid_t> stopped;
  for (const int host : inner) {
    stopped[host] = stop_in_its_sleep(process(host), host);
    ASSERT_GT(stopped[host], 0) << "it has ended";
    while (counted(host, UNISONO_NIC_SENT_UP) == at(sent_up, host)) std::this_thread::yield();
    EXPECT_EQ(counted(host, UNISONO_NIC_WOKEN), at(woken, host)) << "by what passes: " << host;
  }
  process(0).line().say("go");
  EXPECT_EQ(process(0).line().hear(), "has the result") << "the inner nodes' processes are stopped";
  for (const int host : inner) {
    while (nic::test::has_armed_waiter(daemon_on(host))) std::this_thread::yield();
    EXPECT_EQ(counted(host, UNISONO_NIC_WOKEN), at(woken, host) + 1) << host;
    ASSERT_EQ(kill(stopped[host], SIGCONT), 0);
  }
  for (const int host : host_of_) {
    if (host != 0) {
      EXPECT_EQ(process(host).line().hear(), "has the result");
    }
    EXPECT_EQ(counted(host, UNISONO_NIC_SENT_UP), at(sent_up, host) + (host != 0));
  }
  for (const int host : host_of_) process(host).line().say("leave");
  expect_all_clean(processes);
  for (const int host : host_of_) EXPECT_EQ(status(host).groups, 0U) << host;
}

TEST_F(NicTreeJob, InnerNodesOfSixteenHostsSleepUntilTheResult) {
  use(16, {});
  expect_inner_nodes_sleep();
}

// Eight hosts have a tree with inner nodes where results go down it.
TEST_F(NicTreeJob, ContributionsPassWithoutAContextSwitchOnEightAndSixteenHosts) {
  use(8, {{"UNISONO_MULTICAST", "off"}});
  expect_inner_nodes_untouched();
  use(16, {});
  expect_inner_nodes_untouched();
}

// The result goes down the same tree by clones; inner nodes send several.
TEST_F(NicTreeJob, InnerNodesOfEightHostsSleepUntilTheResultWithoutMulticast) {
  use(8, {{"UNISONO_MULTICAST", "off"}});
  expect_inner_nodes_sleep();
}

// A root's question reaches all hosts, and the answers pass through inner nodes. Each rank is the
// last one in several barriers.
TEST_F(NicTreeJob, BarriersThatAskPassThroughInnerNodes) {
  constexpr int kBarriers = 3 * kMany;
  use(kMany, {{"UNISONO_ALGORITHM", "barrier:test-and-set"}});
  start_daemons();
  const SharedCounts come(kBarriers);
  auto processes = start_job([&come](const NicRank& self) {
    const Turns turns(come);
    self.line.say("ready");
    self.line.hear();
    for (int i = 0; i < kBarriers; ++i) {
      const auto barrier = static_cast<std::size_t>(i);
      if (self.rank == i % self.ranks) turns.await(barrier, self.ranks - 1);
      ++come[barrier];
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      ASSERT_EQ(come[barrier], self.ranks) << "a rank left early";
    }
    leave(self);
  });
  for (const HostProcess& rank : processes) ASSERT_EQ(rank.line().hear(), "ready");
  EXPECT_FALSE(inner_nodes().empty());
  const std::uint64_t sent_before = counted(UNISONO_NIC_SENT_UP);
  for (const HostProcess& rank : processes) rank.line().say("go");
  expect_all_clean(processes);
  EXPECT_GE(counted(0, UNISONO_NIC_QUERIED), std::uint64_t{kBarriers / 2});
  EXPECT_EQ(counted(UNISONO_NIC_SENT_UP) - sent_before, std::uint64_t{kBarriers * (kMany - 1)})
      << "one contribution of each rank";
}

TEST_F(NicTreeJob, EveryCollectiveIsRightOnEightAndSixteenHosts) {
  for (const int hosts : {8, 16}) {
    SCOPED_TRACE(hosts);
    use(hosts, {});
    start_daemons();
    auto processes = start_job([](const NicRank& self) {
      ASSERT_NO_FATAL_FAILURE(check_sums(self));
      for (int root = 0; root < self.ranks; ++root) {
        ASSERT_NO_FATAL_FAILURE(check_reductions(self, 1 + 10 * root, root));
      }
      leave(self);
    });
    expect_all_clean(processes);
    EXPECT_GT(operations(), 20U);
  }
}

}  // namespace
}  // namespace unisono::harness::tree_job_test
