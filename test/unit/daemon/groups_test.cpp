// SPDX-License-Identifier: BSD-3-Clause
// Which users may have which groups: quotas, owners, and the groups that end with a connection.
#include "daemon/groups.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "unit/daemon/fake_device.hpp"

namespace unisono::daemon::test::groups_test {
namespace {

constexpr Client kAnna = {1, 1000, 11};
constexpr Client kAnnasOther = {2, 1000, 12};
constexpr Client kBert = {3, 2000, 13};
constexpr Client kRoot = {4, 0, 14};

unisono_nic_row row(std::uint32_t communicator, std::uint32_t children = 2) {
  unisono_nic_row made = {};
  made.id = {7, communicator};
  made.depth = 2;
  made.children = children;
  return made;
}

TEST(Groups, AConnectionsGroupsGoWithIt) {
  FakeDevice device;
  Groups groups(device, {});
  ASSERT_TRUE(groups.join(kAnna, row(1)).ok());
  ASSERT_TRUE(groups.join(kAnnasOther, row(2)).ok());
  ASSERT_TRUE(groups.join(kAnna, row(3)).ok());
  groups.drop(kAnna);
  ASSERT_EQ(device.rows.size(), 1U);
  EXPECT_EQ(device.rows.begin()->second.id.communicator, 2U);
  EXPECT_EQ(groups.count(), 1U);
}

TEST(Groups, NobodyRemovesAnothersGroup) {
  FakeDevice device;
  Groups groups(device, {});
  const auto index = groups.join(kAnna, row(1));
  ASSERT_TRUE(index.ok());
  for (const Client& other : {kAnnasOther, kBert, kRoot}) {
    const base::Status left = groups.leave(other, *index);
    ASSERT_FALSE(left.ok());
    EXPECT_EQ(left.error().message, "unisonod: group 0 is not one of this connection's");
  }
  EXPECT_FALSE(groups.leave(kAnna, 99).ok());
  EXPECT_TRUE(groups.leave(kAnna, *index).ok());
  EXPECT_TRUE(device.rows.empty());
}

TEST(Groups, QuotaOfGroupsIsOfAUserNotOfAConnection) {
  FakeDevice device;
  Groups groups(device, {.groups = 2});
  ASSERT_TRUE(groups.join(kAnna, row(1)).ok());
  ASSERT_TRUE(groups.join(kAnnasOther, row(2)).ok());
  EXPECT_EQ(groups.groups_left(1000), 0U);
  const auto refused = groups.join(kAnna, row(3));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::Code::resources);
  EXPECT_EQ(
      refused.error().message,
      "unisonod: user 1000 has 2 groups in the NIC path, which is all that one user may have; "
      "free communicators, or start unisonod with a larger --groups-per-user");
  EXPECT_TRUE(groups.join(kBert, row(3)).ok()) << "another user has a quota of its own";
  groups.drop(kAnnasOther);
  EXPECT_TRUE(groups.join(kAnna, row(4)).ok());
}

TEST(Groups, QuotaOfMemory) {
  FakeDevice device;
  Groups groups(device, {.bytes = 40 << 10});
  ASSERT_TRUE(groups.join(kAnna, row(1, 5)).ok());
  EXPECT_EQ(groups.bytes_left(1000), (40U << 10) - nic::memory_bytes(row(1, 5)));
  const auto refused = groups.join(kAnna, row(2, 5));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "unisonod: user 1000 has 24 KiB in the NIC path and asks for 24 KiB; one user may have "
            "40 KiB; free communicators, or start unisonod with a larger --memory-per-user");
  EXPECT_EQ(groups.bytes(), nic::memory_bytes(row(1, 5)));
}

// A process that has left a group may have its memory mapped still, or hand it to others.
TEST(Groups, MemoryThatAProcessKeepsCountsAfterItsGroup) {
  FakeDevice device;
  const std::uint64_t bytes = nic::memory_bytes(row(1, 5));
  Groups groups(device, {.bytes = bytes + bytes / 2});
  const auto index = groups.join(kAnna, row(1, 5));
  ASSERT_TRUE(index.ok());
  base::Descriptor kept(dup(device.memory_of.at(*index).get()));
  ASSERT_TRUE(groups.leave(kAnna, *index).ok());
  EXPECT_TRUE(device.rows.empty());
  EXPECT_EQ(groups.bytes_left(1000), bytes / 2);
  const auto refused = groups.join(kAnna, row(2, 5));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "unisonod: user 1000 has 24 KiB in the NIC path, 24 KiB of it in groups that it has "
            "left and asks for 24 KiB; one user may have 36 KiB; free communicators, or start "
            "unisonod with a larger --memory-per-user");
  EXPECT_TRUE(groups.join(kBert, row(2, 5)).ok());
  kept.reset();
  EXPECT_TRUE(groups.join(kAnna, row(3, 5)).ok());
  EXPECT_EQ(groups.bytes_left(1000), bytes / 2);
}

TEST(Groups, QuotaOfDescriptors) {
  FakeDevice device;
  Groups groups(device, {.descriptors = 8});
  unisono_nic_row wide = row(1);
  wide.waiters = 4;
  ASSERT_TRUE(groups.join(kAnna, wide).ok());
  const auto refused = groups.join(kAnna, wide);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "unisonod: the groups of user 1000 have 6 file descriptors, and 6 more are asked for; "
            "one user may have 8; free communicators, or start unisonod with a larger "
            "--descriptors-per-user");
  EXPECT_TRUE(groups.join(kAnna, row(2)).ok());
  EXPECT_TRUE(groups.join(kBert, wide).ok());
}

// The last eighth of each resource is reserved for users who have little.
TEST(Groups, OneUserCannotTakeAll) {
  const std::uint64_t bytes = nic::memory_bytes(row(1));
  const Capacity capacities[] = {{.groups = 16}, {.bytes = 16 * bytes}, {.descriptors = 16 * 2}};
  for (const Capacity& capacity : capacities) {
    FakeDevice device;
    Groups groups(device, {.groups = 1000, .descriptors = 10'000}, capacity);
    std::uint32_t joined = 0;
    auto last = groups.join(kAnna, row(1));
    for (; last.ok() && joined < 100; ++joined) last = groups.join(kAnnasOther, row(2 + joined));
    ASSERT_FALSE(last.ok());
    EXPECT_EQ(joined, 14U);
    EXPECT_NE(last.error().message.find("kept for users with fewer than 8 groups"),
              std::string::npos)
        << last.error().message;
    EXPECT_TRUE(groups.join(kBert, row(50)).ok());
    EXPECT_TRUE(groups.join(kRoot, row(51)).ok());
    EXPECT_FALSE(groups.join(kBert, row(52)).ok()) << "there is no more";
  }
}

TEST(Groups, AGroupThatCouldNotBeRemovedCountsAndIsTriedAgain) {
  FakeDevice device;
  Groups groups(device, {.groups = 2, .bytes = 10 * nic::memory_bytes(row(1))});
  const auto index = groups.join(kAnna, row(1));
  ASSERT_TRUE(index.ok());
  device.removes_nothing = true;
  EXPECT_TRUE(groups.leave(kAnna, *index).ok());
  EXPECT_TRUE(groups.has_leaving());
  EXPECT_EQ(groups.count(), 0U);
  EXPECT_EQ(groups.groups_left(1000), 1U);
  groups.refresh();
  EXPECT_EQ(groups.bytes_left(1000), 9 * nic::memory_bytes(row(1)));
  groups.try_again();
  EXPECT_EQ(device.rows.size(), 1U);
  device.removes_nothing = false;
  groups.try_again();
  EXPECT_FALSE(groups.has_leaving());
  EXPECT_TRUE(device.rows.empty());
  EXPECT_EQ(groups.groups_left(1000), 2U);
  groups.refresh();
  EXPECT_EQ(groups.bytes_left(1000), 10 * nic::memory_bytes(row(1)));
}

TEST(Groups, TheNextRemovalTakesThoseAlongThatFailed) {
  FakeDevice device;
  Groups groups(device, {});
  ASSERT_TRUE(groups.join(kAnna, row(1)).ok());
  ASSERT_TRUE(groups.join(kBert, row(2)).ok());
  device.removes_nothing = true;
  groups.drop(kAnna);
  device.removes_nothing = false;
  groups.drop(kBert);
  EXPECT_TRUE(device.rows.empty());
  EXPECT_FALSE(groups.has_leaving());
}

TEST(Groups, AUserSeesItsOwnAndRootSeesAll) {
  FakeDevice device;
  Groups groups(device, {});
  ASSERT_TRUE(groups.join(kAnna, row(1)).ok());
  ASSERT_TRUE(groups.join(kBert, row(2)).ok());
  ASSERT_EQ(groups.lines_for(1000).size(), 1U);
  EXPECT_EQ(groups.lines_for(1000)[0].communicator, 1U);
  EXPECT_EQ(groups.lines_for(1000)[0].process, 11U);
  EXPECT_EQ(groups.lines_for(0).size(), 2U);
  EXPECT_TRUE(groups.lines_for(3000).empty());
}

// A device that is busy does not keep those of the others, and is asked for its own again.
TEST(Groups, EachDeviceRemovesItsGroups) {
  FakeDevice first, second;
  Groups groups(Devices({&first, &second}), {});
  Client on_second = kAnna;
  on_second.interface = 1;
  ASSERT_TRUE(groups.join(kAnna, row(1)).ok());
  ASSERT_TRUE(groups.join(on_second, row(2)).ok());
  EXPECT_EQ(first.rows.size(), 1U);
  EXPECT_EQ(second.rows.size(), 1U);
  EXPECT_EQ(groups.groups_left(1000), Quota().groups - 2) << "the quota is for all devices";
  first.removes_nothing = true;
  groups.drop(kAnna);
  EXPECT_EQ(first.rows.size(), 1U);
  EXPECT_TRUE(second.rows.empty());
  EXPECT_TRUE(groups.has_leaving());
  first.removes_nothing = false;
  groups.try_again();
  EXPECT_TRUE(first.rows.empty());
  EXPECT_FALSE(groups.has_leaving());
}

}  // namespace
}  // namespace unisono::daemon::test::groups_test
