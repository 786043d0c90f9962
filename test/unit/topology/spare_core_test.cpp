// SPDX-License-Identifier: BSD-3-Clause
// engine/spare_core: agents of ranks that are bound get cores beside theirs, others stay where they
// are; and threads inherit the place.
#include "topology/spare_core.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <thread>

namespace unisono::topology::spare_core_test {
namespace {

UsableCores cores(std::initializer_list<int> numbers, double quota = 0) {
  UsableCores result;
  for (const int core : numbers) {
    result.mask[static_cast<std::size_t>(core / 64)] |= std::uint64_t{1} << (core % 64);
  }
  result.quota = quota;
  return result;
}

TEST(SpareCore, OfRanksThatAreBoundEachHasItsOwn) {
  const std::vector<UsableCores> ranks = {cores({0}), cores({1}), cores({70})};
  const UsableCores allowed = cores({0, 1, 2, 3, 70, 71});
  EXPECT_EQ(spare_core(ranks, 0, allowed), 2);
  EXPECT_EQ(spare_core(ranks, 1, allowed), 3);
  EXPECT_EQ(spare_core(ranks, 2, allowed), 71);
}

TEST(SpareCore, FewAreShared) {
  const std::vector<UsableCores> ranks = {cores({0}), cores({1}), cores({2})};
  for (const std::size_t own : {0U, 1U, 2U}) {
    EXPECT_EQ(spare_core(ranks, own, cores({0, 1, 2, 3})), 3);
  }
}

TEST(SpareCore, WhereAllAreTakenThereIsNone) {
  EXPECT_EQ(spare_core({cores({0}), cores({1})}, 0, cores({0, 1})), std::nullopt);
  EXPECT_EQ(spare_core({cores({0, 1}), cores({0, 1})}, 1, cores({0, 1})), std::nullopt);
  EXPECT_EQ(spare_core({cores({0})}, 0, cores({})), std::nullopt) << "it may not be changed";
}

// The scheduler finds the free one.
TEST(SpareCore, RanksThatAreNotBoundKeepTheirs) {
  EXPECT_FALSE(fills_its_cores({cores({0, 1, 2}), cores({0, 1, 2})}, 0));
  EXPECT_EQ(spare_core({cores({0, 1, 2}), cores({0, 1, 2})}, 0, cores({0, 1, 2, 3})), std::nullopt);
  EXPECT_EQ(spare_core({cores({0, 1}), cores({2, 3})}, 1, cores({0, 1, 2, 3, 4})), std::nullopt);
}

// Some launchers bind all ranks of a host to the same few cores.
TEST(SpareCore, RanksThatFillTheirCoresTogetherAreBound) {
  const std::vector<UsableCores> ranks = {cores({0, 1}), cores({0, 1})};
  EXPECT_EQ(spare_core(ranks, 0, cores({0, 1, 2, 3})), 2);
  EXPECT_EQ(spare_core(ranks, 1, cores({0, 1, 2, 3})), 3);
}

TEST(SpareCore, AQuotaThatRanksUseUpLeavesNone) {
  const UsableCores allowed = cores({0, 1, 2, 3});
  EXPECT_EQ(spare_core({cores({0}, 2), cores({1}, 2)}, 0, allowed), std::nullopt);
  EXPECT_EQ(spare_core({cores({0}, 3), cores({1}, 3)}, 0, allowed), 2);
}

TEST(SpareCore, WhatIsAllowedHoldsWhatIsUsedAndChangesNothing) {
  const UsableCores before = usable_cores();
  const UsableCores allowed = allowed_cores();
  for (std::size_t w = 0; w < before.mask.size(); ++w) {
    EXPECT_EQ(before.mask[w] & ~allowed.mask[w], 0U);
  }
  EXPECT_EQ(usable_cores().mask, before.mask);
}

// From a thread that is bound to the first of its cores; with one core only, to that again.
TEST(SpareCore, ThreadsInheritItAndTheirStarterDoesNotKeepIt) {
  std::vector<int> usable;
  for (int core = 0; core < kMostCores; ++core) {
    const UsableCores all = usable_cores();
    if ((all.mask[static_cast<std::size_t>(core / 64)] >> (core % 64) & 1U) != 0) {
      usable.push_back(core);
    }
  }
  const int first = usable.front();
  const int last = usable.back();
  std::thread bound([first, last] {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(static_cast<std::size_t>(first), &own);
    ASSERT_EQ(sched_setaffinity(0, sizeof own, &own), 0);
    UsableCores inherited;
    std::thread thread;
    {
      const WithCore place(last);
      ASSERT_TRUE(place.added());
      thread = std::thread([&inherited] { inherited = usable_cores(); });
    }
    thread.join();
    EXPECT_EQ(inherited.mask, cores({first, last}).mask);
    EXPECT_EQ(usable_cores().mask, cores({first}).mask);
    const WithCore none(std::nullopt);
    EXPECT_FALSE(none.added());
    EXPECT_EQ(usable_cores().mask, cores({first}).mask);
  });
  bound.join();
}

}  // namespace
}  // namespace unisono::topology::spare_core_test
