// SPDX-License-Identifier: BSD-3-Clause
#include "network/datagram_sleepers.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "network/sleep_on.hpp"

namespace unisono::network::datagram_sleepers_test {
namespace {

TEST(DatagramSleepers, EachIsToldUntilItHasSeenIt) {
  DatagramSleepers sleepers;
  const int first = sleepers.announce();
  const int second = sleepers.announce();
  const auto told = [&] {
    return sleep_on({sleepers.descriptor(first), sleepers.descriptor(second)}, 0);
  };
  EXPECT_EQ(told(), 0U);
  sleepers.tell_all();
  EXPECT_EQ(told(), 3U);
  sleepers.drain(first);
  EXPECT_EQ(told(), 2U);
  sleepers.withdraw(second);
  EXPECT_EQ(sleepers.announce(), second);
  EXPECT_EQ(told(), 2U) << "nobody has seen it";
  sleepers.drain(second);
  EXPECT_EQ(told(), 0U);
}

TEST(DatagramSleepers, WithoutADescriptorAThreadIsNotTold) {
  DatagramSleepers sleepers;
  ASSERT_TRUE(sleepers.open());
  const int told = sleepers.announce();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const int untold = sleepers.announce();
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(untold, DatagramSleepers::kUntold);
  EXPECT_EQ(sleepers.descriptor(untold), -1);
  const int later = sleepers.announce();
  EXPECT_NE(sleepers.descriptor(later), -1) << "there are some again";
  sleepers.tell_all();
  EXPECT_EQ(sleep_on({sleepers.descriptor(told), sleepers.descriptor(later)}, 0), 3U);
}

}  // namespace
}  // namespace unisono::network::datagram_sleepers_test
