// SPDX-License-Identifier: BSD-3-Clause
// How many cores ranks may use: masks, bindings and the control group's quota.
#include "topology/cores.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

namespace unisono::topology::cores_test {
namespace {

UsableCores cores_of(std::initializer_list<int> numbers, double quota = 0) {
  UsableCores cores;
  for (const int n : numbers) cores.mask[static_cast<std::size_t>(n / 64)] |= 1ULL << (n % 64);
  cores.quota = quota;
  return cores;
}

TEST(Cores, RanksPerCoreCountsMasksBindingsAndQuota) {
  EXPECT_EQ(ranks_per_core({cores_of({0, 1})}), 0.5);
  EXPECT_EQ(ranks_per_core({cores_of({0, 1}), cores_of({0, 1})}), 1);
  EXPECT_EQ(ranks_per_core({cores_of({0, 1}), cores_of({0, 1}), cores_of({0, 1})}), 1.5);
  EXPECT_EQ(ranks_per_core({cores_of({3}), cores_of({70})}), 1);
  EXPECT_EQ(ranks_per_core({cores_of({3}), cores_of({3})}), 2);
  EXPECT_EQ(ranks_per_core({cores_of({0}), cores_of({0}), cores_of({1, 2, 3})}), 2)
      << "two bound to one core";
  EXPECT_EQ(ranks_per_core({cores_of({0, 1}, 0.5), cores_of({0, 1}, 1)}), 4) << "the quota";
  EXPECT_EQ(ranks_per_core({cores_of({0, 1}, 2), cores_of({0, 1}, 2)}), 1);
  EXPECT_EQ(ranks_per_core({cores_of({}), cores_of({})}), 2) << "one core, if none is known";
}

TEST(Cores, TheTightestQuotaOfTheGroupAndItsParentsCounts) {
  const std::filesystem::path mount =
      std::filesystem::temp_directory_path() / ("unisono-cgroup-" + std::to_string(getpid()));
  std::filesystem::create_directories(mount / "a/b");
  std::ofstream(mount / "a/cpu.max") << "150000 100000\n";
  std::ofstream(mount / "a/b/cpu.max") << "max 100000\n";
  EXPECT_EQ(cgroup_quota(mount.string(), "0::/a/b\n"), 1.5);
  std::ofstream(mount / "a/b/cpu.max") << "50000 100000\n";
  EXPECT_EQ(cgroup_quota(mount.string(), "0::/a/b\n"), 0.5);
  EXPECT_EQ(cgroup_quota(mount.string(), "0::/\n"), std::nullopt);
  EXPECT_EQ(cgroup_quota(mount.string(), "1:cpu:/a\n"), std::nullopt) << "cgroup v1 only";
  std::filesystem::remove_all(mount);
}

TEST(Cores, CountIsLimitedByTheQuotaAndAtLeastOne) {
  EXPECT_EQ(count_cores(cores_of({0, 3, 70})), 3);
  EXPECT_EQ(count_cores(cores_of({0, 3, 70}, 1.5)), 2) << "half a core's time runs one thread";
  EXPECT_EQ(count_cores(cores_of({0, 3, 70}, 0.1)), 1);
  EXPECT_EQ(count_cores(cores_of({0, 3, 70}, 8)), 3);
  EXPECT_EQ(count_cores(UsableCores{}), 1);
}

TEST(Cores, ThisThreadHasAtLeastOne) {
  const UsableCores cores = usable_cores();
  EXPECT_TRUE(std::ranges::any_of(cores.mask, [](std::uint64_t word) { return word != 0; }));
}

}  // namespace
}  // namespace unisono::topology::cores_test
