// SPDX-License-Identifier: BSD-3-Clause
// A rank waits by the times of its job's machine file (job/cores.hpp).
#include "job/cores.hpp"

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "model/default_machine.hpp"
#include "unit/job/tables.hpp"

namespace unisono::job::test::cores_test {
namespace {

using model::Constant;

// How a rank of a job waits whose ranks share cores, or have a core each.
wait::WaitPolicy policy_on(const model::Machine& machine, bool shares_cores,
                           const base::Environment& environment = {}) {
  const int ranks = shares_cores ? 64 : 1;
  Tables tables(ranks);
  std::vector<std::unique_ptr<Parts>> parts;
  for (int rank = 0; rank < ranks; ++rank) parts.push_back(std::make_unique<Parts>(tables, rank));
  Cores cores;
  for (const auto& each : parts) {
    cores.publish(each->ranks);
    RankHeader& entry = each->ranks.entry(each->ranks.own());
    for (auto& word : entry.cores) word.store(0);
    entry.cores[0].store(1);  // one core for all
    entry.quota_millicores.store(0);
  }
  const auto settings = base::Settings::from(environment);
  EXPECT_TRUE(settings.ok());
  constexpr int kSharedByHosts = 3;
  cores.settle(parts.front()->ranks, false, kSharedByHosts, *settings, machine);
  EXPECT_EQ(cores.shared_by_hosts(), kSharedByHosts);
  EXPECT_EQ(cores.are_oversubscribed(), shares_cores);
  return cores.wait_policy();
}

model::Machine machine_with(Constant constant, double number, model::Unit unit) {
  model::Machine machine = model::default_machine();
  machine.constants[static_cast<std::size_t>(constant)] =
      model::Value{.number = number, .unit = unit, .where = "this test"};
  return machine;
}

TEST(Cores, ARankSpinsForTheTimeOfTheMachineFile) {
  const auto machine = machine_with(Constant::rank_spin, 7, model::Unit::us);
  EXPECT_EQ(policy_on(machine, false).spin_ns, 7'000);
  EXPECT_EQ(policy_on(machine, true).spin_ns, 0) << "ranks that share a core do not spin";
  EXPECT_EQ(policy_on(machine, false, {{"UNISONO_SPIN", "3us"}}).spin_ns, 3'000);
}

TEST(Cores, RanksThatShareACoreYieldByTheTurnOfTheMachineFile) {
  const auto short_turns = machine_with(Constant::rank_turn, 1, model::Unit::us);
  const auto long_turns = machine_with(Constant::rank_turn, 3, model::Unit::us);
  EXPECT_EQ(policy_on(long_turns, true).yield_ns, 3 * policy_on(short_turns, true).yield_ns);
  EXPECT_EQ(policy_on(long_turns, false).yield_ns, policy_on(short_turns, false).yield_ns);
}

TEST(Cores, ABackgroundThreadSpinsForTheTimeOfTheMachineFile) {
  const auto machine = machine_with(Constant::background_spin, 0.3, model::Unit::ms);
  EXPECT_EQ(policy_on(machine, false).background_spin_ns, 300'000);
}

// A file may say up to 1e15 s, which no integer of nanoseconds holds.
TEST(Cores, NoTimeOfAMachineFileIsTooLong) {
  for (const Constant each :
       {Constant::rank_spin, Constant::rank_turn, Constant::background_spin}) {
    const auto machine = machine_with(each, 1e15, model::Unit::s);
    for (const bool shares_cores : {false, true}) {
      const wait::WaitPolicy policy = policy_on(machine, shares_cores);
      EXPECT_LE(policy.spin_ns, base::kSecond);
      EXPECT_LE(policy.yield_ns, base::kSecond);
      EXPECT_LE(policy.background_spin_ns, base::kSecond);
      EXPECT_GT(policy.yield_ns, 0);
    }
  }
}

}  // namespace
}  // namespace unisono::job::test::cores_test
