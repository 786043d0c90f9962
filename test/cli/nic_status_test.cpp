// SPDX-License-Identifier: BSD-3-Clause
// What `unisono nic status` prints for what the kernel and the daemon may answer.
#include "nic_status.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace unisono::tools::test {
namespace {

nic::Interface interface(const char* name, const char* driver) {
  nic::Interface made;
  made.name = name;
  made.driver = driver;
  made.ipv4 = htonl(0x0A000001);
  made.mask = htonl(0xFFFFFF00);
  made.up = made.ethernet = true;
  return made;
}

TEST(NicStatus, InterfacesAndWhetherTheyCanBeServed) {
  std::vector<nic::Interface> all = {interface("eth0", "ixgbe"), interface("u0", "veth"),
                                     interface("eth1", "ixgbe"), interface("eth2", "ixgbe"),
                                     interface("ib0", "")};
  all[2].up = false;
  all[3].ipv4 = 0;
  all[4].ethernet = false;
  EXPECT_EQ(interfaces_text(all),
            "interfaces:\n"
            "  eth0:\n    driver: ixgbe\n    address: 10.0.0.1/24\n"
            "    usable: yes, in native mode if its driver can, otherwise in generic mode\n"
            "  u0:\n    driver: veth\n    address: 10.0.0.1/24\n"
            "    usable: yes, in generic mode: its frames are socket buffers\n"
            "  eth1:\n    driver: ixgbe\n    address: 10.0.0.1/24\n    usable: no: it is down\n"
            "  eth2:\n    driver: ixgbe\n    usable: no: it has no IPv4 address\n"
            "  ib0:\n    driver: none\n    address: 10.0.0.1/24\n"
            "    usable: no: it is no Ethernet interface\n");
  EXPECT_EQ(interfaces_text({}), "interfaces:\n  none but the loopback\n");
}

TEST(NicStatus, TheDaemon) {
  nic::ServiceStatus status;
  status.served.interface = "u0";
  status.served.driver = "veth";
  status.served.own.ipv4 = htonl(0x0A000001);
  status.served.own.port = htons(47300);
  status.served.own.mac[5] = 9;
  status.served.groups_left = 63;
  status.served.bytes_left = 1 << 20;
  status.process = 17;
  status.connections = 2;
  status.groups = 3;
  status.bytes = 24 << 10;
  status.own_groups = {{1000, 4242, 0xABC, 1, 0, 2, 8192}};
  status.counters[UNISONO_NIC_SENT_UP] = 12;
  const std::string text = service_text("/run/x", status);
  EXPECT_TRUE(text.starts_with(
      "unisonod:\n"
      "  socket: /run/x\n"
      "  process: 17, 2 connections\n"
      "  interface: u0 (veth), generic mode\n"
      "  address: 10.0.0.1 port 47300, 00:00:00:00:00:09\n"
      "  groups: 3 of all users, 24 KiB\n"
      "    job 00000abc communicator 1: rank 0, 2 children, 8 KiB, process 4242 of user 1000\n"
      "  you may have 63 more groups and 1024 KiB\n"
      "  packets:\n    foreign: 0\n"))
      << text;
  EXPECT_NE(text.find("    sent_up: 12\n"), std::string::npos);
}

TEST(NicStatus, NoDaemon) {
  EXPECT_EQ(service_text("/run/x", base::Error{base::Code::unsupported, "nobody is there"}),
            "unisonod: none\n  because: nobody is there\n");
}

}  // namespace
}  // namespace unisono::tools::test
