// SPDX-License-Identifier: BSD-3-Clause
// When vectors are cut in the NIC path: if it is faster by the costs of packets, and never where it
// is slower.
#include "select/nic/split_choice.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "model/default_machine.hpp"

namespace unisono::select::test::split_choice_test {
namespace {

constexpr int kOwn = 1 << 20;  // more processors than needed

SplitWork work_of(int hosts, int processors, std::size_t words, bool adds_floats = true) {
  return {.hosts = hosts,
          .processors = processors,
          .fan_in = std::min(7, hosts - 1),
          .words = words,
          .adds_floats = adds_floats,
          .costs = NicCosts::of(model::default_machine())};
}

TEST(NicCosts, AreThoseOfTheMachinesNicPath) {
  const NicCosts costs = NicCosts::of(model::default_machine());
  EXPECT_DOUBLE_EQ(costs.packet, 1780);
  EXPECT_NEAR(costs.packet_word, 4.2, 1e-9);
  EXPECT_DOUBLE_EQ(costs.send, 130);
  EXPECT_NEAR(costs.send_word, 3.3, 1e-9);
  EXPECT_NEAR(costs.integer, 1, 1e-9);
  EXPECT_NEAR(costs.real, 8.8, 1e-9);
  EXPECT_DOUBLE_EQ(costs.doorbell, 2500);
}

// The files of the papers' machines and those of tune have no operators, or no NIC path.
TEST(NicCosts, WithoutANicPathAreThoseBetweenHosts) {
  model::Machine machine = model::default_machine();
  std::erase_if(machine.paths, [](const auto& path) { return path.level == model::Level::nic; });
  const NicCosts costs = NicCosts::of(machine);
  EXPECT_DOUBLE_EQ(costs.send, 1500);
  EXPECT_GT(costs.doorbell, 0);
}

// A tree more pays if only combining costs, and never if only doorbells do.
TEST(SplitChoice, FollowsTheMachine) {
  SplitWork work = work_of(8, kOwn, 0);
  work.costs = {.real = 100};
  EXPECT_EQ(SplitChoice::computed(work, SplitChoice::kMost).splits(175, true), SplitChoice::kMost);
  work.costs = {.real = 0.01, .doorbell = 1000};
  EXPECT_EQ(SplitChoice::computed(work, SplitChoice::kMost).most(), 0);
}

TEST(SplitChoice, PaysForLongVectorsOfManyHosts) {
  const auto choice = SplitChoice::computed(work_of(512, kOwn, 0), SplitChoice::kMost);
  EXPECT_EQ(choice.splits(1, true), 0) << "nothing to cut";
  EXPECT_EQ(choice.splits(8, true), 0) << "a packet costs more than eight additions";
  EXPECT_GT(choice.splits(175, true), 0);
  EXPECT_GT(choice.splits(nic::kWordsMax, true), 0);
  EXPECT_GT(choice.splits(nic::kWordsMax, false), 0) << "packets on two trees, and not on one";
  for (std::size_t words = 1; words <= UNISONO_NIC_WORDS_MAX; ++words) {
    EXPECT_GE(choice.splits(words, true), choice.splits(words - 1, true)) << words;
    EXPECT_GE(choice.splits(words, true), choice.splits(words, false)) << "integers add faster";
  }
}

TEST(SplitChoice, NeverWhereProcessorsAreShared) {
  for (const int hosts : {2, 3, 4, 8, 16, 64}) {
    const auto choice = SplitChoice::computed(work_of(hosts, 2, 0), SplitChoice::kMost);
    EXPECT_EQ(choice.most(), 0) << hosts;
  }
}

TEST(SplitChoice, NeverLosesByItsOwnReckoning) {
  for (const int hosts : {2, 3, 5, 8, 9, 16, 100, 512}) {
    for (const int processors : {1, 2, hosts / 2 + 1, hosts, kOwn}) {
      const auto choice = SplitChoice::computed(work_of(hosts, processors, 0), SplitChoice::kMost);
      for (std::size_t words = 0; words <= nic::kWordsMax; words += 7) {
        for (const bool adds_floats : {false, true}) {
          const SplitWork work = work_of(hosts, processors, words, adds_floats);
          const int splits = choice.splits(words, adds_floats);
          EXPECT_LE(1 << splits, hosts);
          EXPECT_LE(split_cost_ns(work, splits), split_cost_ns(work, 0));
        }
      }
    }
  }
}

// One more packet costs the work of its busiest host, not the whole path once more.
TEST(SplitChoice, PacketsFollowOneAnother) {
  for (const int hosts : {2, 4, 8}) {
    const double one = split_cost_ns(work_of(hosts, kOwn, UNISONO_NIC_WORDS_MAX), 0);
    const double all = split_cost_ns(work_of(hosts, kOwn, nic::kWordsMax), 0);
    EXPECT_GT(all, one) << hosts;
    EXPECT_LT(all, nic::kPacketsMax * one) << hosts;
  }
}

TEST(SplitChoice, ForcedCutsWhatHasWordsForAllPieces) {
  const auto choice = SplitChoice::forced(2);
  EXPECT_EQ(choice.splits(3, false), 0);
  EXPECT_EQ(choice.splits(4, false), 2);
  EXPECT_EQ(choice.splits(nic::kWordsMax, true), 2);
  EXPECT_EQ(SplitChoice::forced(0).splits(175, true), 0);
}

TEST(ProcessorsOf, OfAMachineCountOnce) {
  const auto host = [](std::uint32_t machine, std::uint32_t processors) {
    nic::Capabilities made;
    made.machine = machine;
    made.processors = processors;
    return made;
  };
  EXPECT_EQ(processors_of(std::vector{host(5, 2), host(5, 2), host(5, 2)}), 2);
  EXPECT_EQ(processors_of(std::vector{host(5, 2), host(6, 8), host(5, 2)}), 10);
  EXPECT_EQ(processors_of(std::vector{host(5, 0)}), 1) << "it has told nothing";
}

}  // namespace
}  // namespace unisono::select::test::split_choice_test
