// SPDX-License-Identifier: BSD-3-Clause
// Who may have which groups: quotas, owners, and what goes with a connection.
#include "daemon/groups.hpp"

#include <gtest/gtest.h>

#include "unit/daemon/fake_device.hpp"

namespace unisono::daemon::test {
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

}  // namespace
}  // namespace unisono::daemon::test
