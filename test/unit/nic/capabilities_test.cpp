// SPDX-License-Identifier: BSD-3-Clause
// Either all hosts of a group use the NIC path or none does; every rank decides by the same facts.
#include "nic/service/capabilities.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace unisono::nic::test::capabilities_test {
namespace {

Capabilities host_at(std::uint32_t host) {
  Capabilities made;
  made.address.ipv4 = htonl(0x0A000000 + host);
  made.mask = htonl(0xFFFFFF00);
  made.available = 1;
  return made;
}

std::string refusal(const std::vector<Capabilities>& hosts) {
  const base::Status agreed = check_capabilities(hosts);
  return agreed.ok() ? "none" : agreed.error().message;
}

TEST(Capabilities, AllHostsOrNone) {
  EXPECT_EQ(refusal({host_at(1), host_at(2), host_at(3)}), "none");
  EXPECT_EQ(refusal({host_at(1), {}, host_at(3)}),
            "the NIC path is not used: rank 1 has none; `unisono nic status` on its host says what "
            "is missing");
  EXPECT_EQ(refusal({host_at(1), host_at(2), host_at(0x102)}),
            "the NIC path is not used: rank 0 is at 10.0.0.1 and rank 2 at 10.0.1.2, which is "
            "another network");
  EXPECT_EQ(refusal({host_at(1), host_at(2), host_at(2)}),
            "the NIC path is not used: ranks 1 and 2 share the interface of 10.0.0.2");
  Capabilities halved = host_at(2);
  halved.preferences.splits = 1;
  EXPECT_EQ(refusal({host_at(1), halved}),
            "the NIC path is not used: ranks 0 and 1 have different values of UNISONO_NIC_SPLITS");
  Capabilities rooted = host_at(3);
  rooted.preferences.rooted = base::Toggle::on;
  EXPECT_EQ(refusal({host_at(1), host_at(2), rooted}),
            "the NIC path is not used: ranks 0 and 2 have different values of UNISONO_NIC_ROOTED");
}

TEST(Capabilities, HostsAreNamedByTheirRanks) {
  const std::vector<int> leaders = {0, 4, 5};
  const base::Status agreed =
      check_capabilities(std::vector<Capabilities>{host_at(1), {}, host_at(3)}, leaders);
  EXPECT_TRUE(agreed.error().message.find("rank 4 has none") != std::string::npos);
}

}  // namespace
}  // namespace unisono::nic::test::capabilities_test
