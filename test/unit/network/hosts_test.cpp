// SPDX-License-Identifier: BSD-3-Clause
#include "network/hosts.hpp"

#include <gtest/gtest.h>

namespace unisono::network::hosts_test {
namespace {

TEST(Hosts, SayWhereARankIsIfThereAreSeveral) {
  bootstrap::JobInfo info;
  info.ranks = 2;
  info.members.resize(2);
  EXPECT_EQ(Hosts(info).place_of(1), "");
  EXPECT_EQ(Hosts(info).with_place(1, "it left"), "it left");
  EXPECT_TRUE(Hosts(info).is_here(1));
  EXPECT_EQ(Hosts(info).count_here(), 2);
  info.hosts = topology::HostMap::apart(2);
  info.members[0].address = *transport::parse_ip("fd00::1");
  info.members[1].address = *transport::parse_ip("10.0.0.3");
  const Hosts hosts(info);
  EXPECT_TRUE(hosts.is_here(0));
  EXPECT_FALSE(hosts.is_here(1));
  EXPECT_EQ(hosts.place_of(0), "host fd00::1") << "its own too: a message is read on all hosts";
  EXPECT_EQ(hosts.place_of(1), "host 10.0.0.3");
  EXPECT_EQ(hosts.with_place(1, "it left"), "host 10.0.0.3; it left");
}

}  // namespace
}  // namespace unisono::network::hosts_test
