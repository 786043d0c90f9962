// SPDX-License-Identifier: BSD-3-Clause
// `unisono nic status`: what it finds on this host, and its output for possible answers of kernel
// and daemon.
#include "nic/nic_status.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace unisono::tools::test::nic_status_test {
namespace {

nic::Interface interface(const char* name, const char* driver) {
  nic::Interface made;
  made.name = name;
  made.driver = driver;
  made.ipv4 = htonl(0x0A000001);
  made.mask = htonl(0xFFFFFF00);
  made.mtu = 1500;
  made.up = made.ethernet = true;
  return made;
}

constexpr std::uint64_t kBpf = std::uint64_t{1} << 39;
constexpr std::uint64_t kPerfmon = std::uint64_t{1} << 38;
constexpr std::uint64_t kNetAdmin = 1 << 12;
constexpr std::uint64_t kSysAdmin = 1 << 21;

TEST(NicStatus, AHostThatHasAll) {
  const Capability all = {"/usr/sbin/unisonod", true, "6.6.0-rc1", kBpf | kPerfmon | kNetAdmin,
                          false};
  EXPECT_EQ(capability_text(all, "/run/x", true),
            "capability:\n"
            "  NIC program: yes, in /usr/sbin/unisonod\n"
            "  kernel: yes, Linux 6.6.0-rc1; it takes 6.6 or newer\n"
            "  privilege: yes, you may start unisonod; to use a daemon takes none\n"
            "  daemon: yes, one serves, at /run/x\n");
}

TEST(NicStatus, AHostThatHasNothing) {
  EXPECT_EQ(capability_text({"", false, "5.15.0", 0, true}, "/run/x", false),
            "capability:\n"
            "  NIC program: no: unisonod is neither beside this program nor in ../sbin\n"
            "  kernel: no, Linux 5.15.0; it takes 6.6 or newer\n"
            "  privilege: no, you lack CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON; to use a daemon takes "
            "none\n"
            "  daemon: no, none serves, at /run/x\n");
}

TEST(NicStatus, EachThingThatMayBeMissing) {
  Capability some = {"/opt/unisonod", false, "6.10", kBpf | kNetAdmin, false};
  const auto has = [&some](const char* line) {
    const std::string text = capability_text(some, "/run/x", false);
    return text.find(line) == std::string::npos ? testing::AssertionFailure() << text
                                                : testing::AssertionSuccess();
  };
  EXPECT_TRUE(has("  NIC program: no: /opt/unisonod was built without clang or libbpf\n"));
  EXPECT_TRUE(has("  kernel: yes, Linux 6.10; it takes 6.6 or newer\n"));
  EXPECT_TRUE(has("  privilege: no, you lack CAP_PERFMON; to use a daemon takes none\n"));
  some.privileges = kSysAdmin;
  EXPECT_TRUE(has("  privilege: yes, you may start unisonod; to use a daemon takes none\n"));
  some.in_user_namespace = true;
  EXPECT_TRUE(
      has("  privilege: no, a user namespace's root may not load programs; to use a daemon "
          "takes none\n"));
  for (const char* const old : {"6.5.13", "5.19.0-41-generic", "4.4"}) {
    some.kernel = old;
    EXPECT_TRUE(has("  kernel: no, Linux ")) << old;
  }
  some.kernel = "custom";
  EXPECT_TRUE(has("  kernel: unknown: custom; it takes Linux 6.6 or newer\n"));
}

TEST(NicStatus, PrivilegesAreThoseOfThisProcess) {
  __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct own[2] = {};
  ASSERT_EQ(syscall(SYS_capget, &head, own), 0);
  const Capability read = read_capability();
  EXPECT_EQ(read.privileges, std::uint64_t{own[1].effective} << 32 | own[0].effective);
  EXPECT_EQ(read.daemon, "") << "none is beside this test";
}

TEST(NicStatus, KnowsAUserNamespace) {
  constexpr int kRefused = 2;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (unshare(CLONE_NEWUSER) != 0) _exit(kRefused);
    _exit(read_capability().in_user_namespace ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kRefused) GTEST_SKIP() << "no user namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(NicStatus, InterfacesAndWhetherTheyCanBeServed) {
  std::vector<nic::Interface> all = {interface("eth0", "ixgbe"), interface("u0", "veth"),
                                     interface("eth1", "ixgbe"), interface("eth2", "ixgbe"),
                                     interface("ib0", ""),       interface("vxlan0", "vxlan")};
  all[2].up = false;
  all[3].ipv4 = 0;
  all[4].ethernet = false;
  all[5].mtu = 1450;
  EXPECT_EQ(interfaces_text(all),
            "interfaces:\n"
            "  eth0:\n    driver: ixgbe\n    address: 10.0.0.1/24\n"
            "    usable: yes, in native mode if its driver can, otherwise in generic mode\n"
            "  u0:\n    driver: veth\n    address: 10.0.0.1/24\n"
            "    usable: yes, in generic mode: its frames are socket buffers\n"
            "  eth1:\n    driver: ixgbe\n    address: 10.0.0.1/24\n    usable: no: it is down\n"
            "  eth2:\n    driver: ixgbe\n    usable: no: it has no IPv4 address\n"
            "  ib0:\n    driver: none\n    address: 10.0.0.1/24\n"
            "    usable: no: it is no Ethernet interface\n"
            "  vxlan0:\n    driver: vxlan\n    address: 10.0.0.1/24\n"
            "    usable: no: it carries 1450 bytes (its MTU), and packets have up to 1500\n");
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
  status.service = {9, 1, 30, 2, 3, 5, 4};
  const auto text_of = [](const std::vector<nic::ServiceStatus>& all) {
    return service_text("/run/x", all);
  };
  const std::string text = text_of({status});
  EXPECT_TRUE(text.starts_with(
      "unisonod:\n"
      "  socket: /run/x\n"
      "  process: 17, 2 connections\n"
      "  groups: 3 of all users, 24 KiB\n"
      "    job 00000abc communicator 1: rank 0, 2 children, 8 KiB, process 4242 of user 1000\n"
      "  you may have 63 more groups and 1024 KiB\n"
      "  service:\n    connections_accepted: 9\n    connections_refused: 1\n"
      "    requests: 30\n    requests_refused: 2\n    malformed: 3\n"
      "    groups_joined: 5\n    groups_ended: 4\n"
      "  interface: u0 (veth), generic mode\n"
      "    address: 10.0.0.1 port 47300, 00:00:00:00:00:09\n"
      "    packets:\n      foreign: 0\n"))
      << text;
  EXPECT_NE(text.find("      sent_up: 12\n"), std::string::npos);
  EXPECT_EQ(text.find("still have mapped"), std::string::npos);
  nic::ServiceStatus second = status;
  second.served.interface = "u1";
  second.counters[UNISONO_NIC_SENT_UP] = 5;
  const std::string both = text_of({status, second});
  EXPECT_TRUE(both.starts_with(text)) << both;
  EXPECT_NE(both.find("  interface: u1 (veth), generic mode\n", text.size()), std::string::npos);
  EXPECT_NE(both.find("      sent_up: 5\n", text.size()), std::string::npos);
  status.retained_bytes = 8 << 10;
  EXPECT_NE(text_of({status}).find("  ended groups that processes still have mapped: 8 KiB\n"),
            std::string::npos);
}

TEST(NicStatus, NoDaemon) {
  EXPECT_EQ(service_text("/run/x", base::Error{base::Code::unsupported, "nobody is there"}),
            "unisonod: none\n  because: nobody is there\n");
}

}  // namespace
}  // namespace unisono::tools::test::nic_status_test
