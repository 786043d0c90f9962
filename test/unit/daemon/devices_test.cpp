// SPDX-License-Identifier: BSD-3-Clause
// Groups of several devices have different numbers, and each goes to its own device.
#include "daemon/devices.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "unit/daemon/fake_device.hpp"

namespace unisono::daemon::test::devices_test {
namespace {

unisono_nic_row row(std::uint32_t communicator) {
  unisono_nic_row made = {};
  made.id = {7, communicator};
  return made;
}

TEST(Devices, AGroupIsOnItsDevice) {
  FakeDevice first, second;
  const Devices devices({&first, &second});
  ASSERT_EQ(devices.count(), 2U);
  const std::uint32_t on_first = *devices.add_group(0, row(1));
  const std::uint32_t on_second = *devices.add_group(1, row(2));
  EXPECT_NE(on_first, on_second);
  EXPECT_EQ(first.rows.size(), 1U);
  EXPECT_EQ(second.rows.size(), 1U);
  EXPECT_EQ(devices.row(on_first).id.communicator, 1U);
  EXPECT_EQ(devices.row(on_second).id.communicator, 2U);
  EXPECT_NE(devices.maps(on_first).slots, devices.maps(on_second).slots);
  EXPECT_EQ(Devices::position_of(on_first), 0U);
  EXPECT_EQ(Devices::position_of(on_second), 1U);
  EXPECT_TRUE(devices.remove_groups(1, std::vector{on_second}).ok());
  EXPECT_EQ(first.rows.size(), 1U);
  EXPECT_TRUE(second.rows.empty());
}

}  // namespace
}  // namespace unisono::daemon::test::devices_test
