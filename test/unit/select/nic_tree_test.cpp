// SPDX-License-Identifier: BSD-3-Clause
// The NIC path's trees are those of an algorithm that the host engine runs to the same bits.
#include "select/nic/tree_choice.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace unisono::select::test::nic_tree_test {
namespace {

TEST(NicTree, IsNamedAsTheHostEngineRunsIt) {
  const auto name_of = [](const std::vector<int>& hosts, int splits = 0, bool multicasts = true) {
    return nic_tree_name(topology::HostMap::of_labels(hosts), splits, multicasts);
  };
  EXPECT_EQ(name_of({0, 1, 2, 3}), "gather-release(4)");
  EXPECT_EQ(name_of({0, 1, 0, 1}), "two-level(gather-release,4)");
  EXPECT_EQ(name_of({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}), "two-level(gather-release,7)");
  EXPECT_EQ(name_of({0, 1, 2, 3}, 2), "split-release(2,4)");
  EXPECT_EQ(name_of({0, 1, 0, 1}, 1), "two-level(split-release,4)");
  EXPECT_EQ(name_of({0, 1, 2, 3}, 0, false), "reduce-broadcast(4)");
  EXPECT_EQ(name_of({0, 1, 2, 0, 1, 2}, 0, false), "two-level(reduce-broadcast,6)");
  EXPECT_EQ(name_of({0, 1}, 0, false), "gather-release(2)") << "to all others is to one";
}

}  // namespace
}  // namespace unisono::select::test::nic_tree_test
