// SPDX-License-Identifier: BSD-3-Clause
// A group's maps as another process gets them: they show this group's memory, and no more than it.
#include "nic/memory/group_mapping.hpp"

#include "nic/harness/trial_device.hpp"

namespace unisono::nic::test::group_mapping_test {
namespace {

class GroupMaps : public TrialDevice {};

TEST_F(GroupMaps, ShowOneGroupsMemory) {
  const unisono_nic_row first = add(inner_row());
  const unisono_nic_row second = add(inner_row());
  GroupMapping again;
  GroupMapping other;
  ASSERT_TRUE(again.open(first, device->maps(first.index)).ok());
  ASSERT_TRUE(other.open(second, device->maps(second.index)).ok());
  post(first, 0, UNISONO_NIC_SUM_INT64, {5});
  EXPECT_EQ(again.memory().slots[0].arrived, 1U);
  EXPECT_EQ(again.memory().blocks[0].data[0], 5U);
  EXPECT_EQ(other.memory().slots[0].arrived, 0U);
  EXPECT_EQ(other.memory().blocks[0].data[0], 0U);
}

TEST_F(GroupMaps, AreNoLargerThanTheGroup) {
  const unisono_nic_row row = add(inner_row());
  unisono_nic_row larger = row;
  larger.depth = UNISONO_NIC_DEPTH_MAX;
  GroupMapping mapping;
  const base::Status opened = mapping.open(larger, device->maps(row.index));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().message,
            "NIC program: map 135936 bytes of a group's blocks: Invalid argument");
}

}  // namespace
}  // namespace unisono::nic::test::group_mapping_test
