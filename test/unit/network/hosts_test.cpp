// SPDX-License-Identifier: BSD-3-Clause
#include "network/hosts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace unisono::network {
namespace {

TEST(Hosts, SayWhereARankIsIfThereAreSeveral) {
  std::vector<bootstrap::Member> members{{.pid = getpid(), .host = 0}, {.pid = 0, .host = 1}};
  EXPECT_EQ(Hosts(members, 0).place_of(1), "");
  EXPECT_EQ(Hosts(members, 0).with_place(1, "it left"), "it left");
  members[0].address = *transport::parse_ip("fd00::1");
  members[1].address = *transport::parse_ip("10.0.0.3");
  const Hosts hosts(members, 0);
  EXPECT_EQ(hosts.place_of(0), "host fd00::1") << "its own too: a message is read on all hosts";
  EXPECT_EQ(hosts.place_of(1), "host 10.0.0.3");
  EXPECT_EQ(hosts.with_place(1, "it left"), "host 10.0.0.3; it left");
}

}  // namespace
}  // namespace unisono::network
