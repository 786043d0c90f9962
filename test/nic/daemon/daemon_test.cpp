// SPDX-License-Identifier: BSD-3-Clause
// unisonod itself, on hosts that are network namespaces, with clients of different users. Processes
// without privilege reduce through the NIC path, no user can access another's group, and nothing is
// left after any end of any process.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "nic/daemon/daemon_hosts.hpp"
#include "nic/daemon/reduce_as.hpp"
#include "nic/service/probe.hpp"

namespace unisono::nic::test::daemon_test {
namespace {

TEST_F(Daemon, ProcessesWithoutPrivilegeReduceThroughIt) {
  for (int host = 0; host < kHosts; ++host) {
    EXPECT_EQ(start(host), "unisonod: serves u0 (generic mode) at " + path(host));
  }
  chmod(folder.c_str(), 0777);  // where the ranks tell each other that they are there
  std::vector<Child> ranks;
  for (int rank = 0; rank < kHosts; ++rank) {
    ranks.push_back(as(kAnna, rank, [&] { return reduce_as(path(rank), rank); }));
  }
  for (Child& rank : ranks) EXPECT_EQ(rank.wait(), 0);
  const auto status = client(0)->status();
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->groups, 0U);
  EXPECT_EQ(status->counters[UNISONO_NIC_SENT_DOWN], 200U);
}

TEST_F(Daemon, TellsWhatItServes) {
  start(0);
  const auto served = client(0)->describe();
  ASSERT_TRUE(served.ok()) << served.error().message;
  EXPECT_EQ(served->interface, "u0");
  EXPECT_EQ(served->driver, "veth");
  EXPECT_EQ(served->native, 0);
  EXPECT_EQ(served->own.ipv4, host_address(0).ipv4);
  EXPECT_EQ(std::memcmp(served->own.mac, host_address(0).mac, 6), 0);
  EXPECT_EQ(served->own.port, htons(kServicePort));
  EXPECT_EQ(served->mask, htonl(0xFFFFFF00));
  EXPECT_EQ(served->groups_left, 64U);
}

// Host 0 has another interface, until the test ends.
class DaemonOfTwo : public Daemon {
 protected:
  void SetUp() override {
    Daemon::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    on(0, [this] {
      ASSERT_EQ(std::system("ip link add u1 type veth peer name u1_peer && "
                            "ip link set u1_peer up && ip address add 10.9.8.1/24 dev u1 && "
                            "ip link set u1 up"),
                0);
      index = if_nametoindex("u1");
    });
  }
  void TearDown() override {
    Daemon::TearDown();
    if (index != 0) on(0, [] { EXPECT_EQ(std::system("ip link delete u1"), 0); });
  }

  const std::uint32_t address = htonl(0x0A090801);
  unsigned index = 0;  // of u1
};

TEST_F(DaemonOfTwo, OneSocketServesBoth) {
  EXPECT_EQ(start(0, {"--interface", "u1"}),
            "unisonod: serves u0 (generic mode), u1 (generic mode) at " + path(0));
  const auto first = client(0), second = client(0);
  const auto served = first->describe();
  ASSERT_TRUE(served.ok()) << served.error().message;
  EXPECT_EQ(served->interface, "u0");
  EXPECT_EQ(served->all, "u0 u1");
  const auto other = second->describe("u1");
  ASSERT_TRUE(other.ok()) << other.error().message;
  EXPECT_EQ(other->interface, "u1");
  EXPECT_EQ(other->own.ipv4, address);
  const auto unknown = second->describe("u9");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("it does not serve u9, but u0, u1"), std::string::npos)
      << unknown.error().message;

  // Each connection has its groups on its interface.
  unisono_nic_row row = leaf_row(2);
  row.up.ipv4 = htonl(0x0A090802);
  const auto on_first = first->join(leaf_row(1));
  const auto on_second = second->join(row);
  ASSERT_TRUE(on_first.ok()) << on_first.error().message;
  ASSERT_TRUE(on_second.ok()) << on_second.error().message;
  EXPECT_EQ((*on_first)->row.own.ipv4, host_address(0).ipv4);
  EXPECT_EQ((*on_second)->row.own.ipv4, address);
  EXPECT_EQ((*on_second)->row.interface, index);
  EXPECT_NE((*on_first)->row.index, (*on_second)->row.index);
  EXPECT_FALSE(first->leave((*on_second)->row.index).ok()) << "another connection's";
  EXPECT_EQ(second->status()->groups, 2U) << "of the whole daemon";
  EXPECT_TRUE(second->leave((*on_second)->row.index).ok());
  EXPECT_EQ(second->status()->groups, 1U);

  // A job chooses by its networks, and takes the first one if they name none.
  const auto chosen = choose_interface(
      *second, [&](const std::string&, std::uint32_t ipv4) { return ipv4 == address; });
  EXPECT_EQ(chosen.ok() ? chosen->interface : chosen.error().message, "u1");
  const auto none =
      choose_interface(*second, [](const std::string&, std::uint32_t) { return false; });
  EXPECT_EQ(none.ok() ? none->interface : none.error().message, "u0");

  on(0, [] { EXPECT_EQ(std::system("ip link set u1 down"), 0); });
  const auto down = second->describe("u1");
  ASSERT_FALSE(down.ok());
  EXPECT_NE(down.error().message.find("interface u1 is down"), std::string::npos);
}

TEST_F(Daemon, AnInterfaceIsServedOnce) {
  EXPECT_EQ(start(0, {"--interface", "u0"}), "unisonod: --interface u0 is given twice");
  EXPECT_EQ(start(0, {"--interface", "nosuch0"}),
            "unisonod: there is no interface nosuch0; `ip link` lists them");
  on(0, [] { EXPECT_EQ(programs_on_egress(), 0) << "what was loaded on the first one goes"; });
}

TEST_F(Daemon, UsersHaveQuotasAndTheirOwnGroupsOnly) {
  start(0, {"--groups-per-user", "1"});
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Child holds = as(kAnna, 0, [&] {
    auto own = ServiceClient::connect(path(0));
    const bool joined = own.ok() && (*own)->join(leaf_row(1)).ok();
    const auto second = joined ? (*own)->join(leaf_row(2)) : base::Error{};
    const bool refused =
        !second.ok() && second.error().message.starts_with("unisonod: user 54321 has 1 groups");
    const char word = joined && refused ? 'y' : 'n';
    if (write(ends[1], &word, 1) == 1) pause();
    return 1;
  });
  char word = 0;
  ASSERT_EQ(read(ends[0], &word, 1), 1);
  EXPECT_EQ(word, 'y');
  Child bert = as(kBert, 0, [&] {
    auto own = ServiceClient::connect(path(0));
    if (!own.ok()) return 1;
    for (std::uint32_t index = 0; index < 4; ++index) {
      if ((*own)->leave(index).ok()) return 2;
    }
    const auto status = (*own)->status();
    if (!status.ok() || status->groups != 1 || !status->own_groups.empty()) return 3;
    return (*own)->join(leaf_row(1)).ok() ? 4 : 0;  // the same job and communicator
  });
  EXPECT_EQ(bert.wait(), 0);
  const auto seen_by_root = client(0)->status();
  ASSERT_TRUE(seen_by_root.ok());
  ASSERT_EQ(seen_by_root->own_groups.size(), 1U);
  EXPECT_EQ(seen_by_root->own_groups[0].user, kAnna);
  EXPECT_EQ(seen_by_root->own_groups[0].process, static_cast<std::uint32_t>(holds.pid()));
  close(ends[0]);
  close(ends[1]);
}

TEST_F(Daemon, AKilledClientLeavesNoGroup) {
  start(0);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Child victim = as(kAnna, 0, [&] {
    auto own = ServiceClient::connect(path(0));
    const bool joined =
        own.ok() && (*own)->join(leaf_row(1)).ok() && (*own)->join(leaf_row(2)).ok();
    const char word = joined ? 'y' : 'n';
    if (write(ends[1], &word, 1) == 1) pause();
    return 1;
  });
  char word = 0;
  ASSERT_EQ(read(ends[0], &word, 1), 1);
  ASSERT_EQ(word, 'y');
  const auto observer = client(0);
  EXPECT_EQ(observer->status()->groups, 2U);
  const auto maps = objects_of(daemons[0].pid()).maps;
  EXPECT_EQ(victim.end(SIGKILL), 128 + SIGKILL);
  while (observer->status()->groups != 0) std::this_thread::yield();
  EXPECT_EQ(objects_of(daemons[0].pid()).maps.size() + 6, maps.size())
      << "two groups of two maps and a ring each";
  close(ends[0]);
  close(ends[1]);
}

TEST_F(Daemon, AKilledDaemonLeavesNothingAndItsClientsAreTold) {
  start(0);
  auto own = client(0);
  auto member = own->join(leaf_row(1));
  ASSERT_TRUE(member.ok()) << member.error().message;
  EXPECT_FALSE(own->lost());
  on(0, [] { EXPECT_EQ(programs_on_egress(), 1); });
  const auto maps = objects_of(daemons[0].pid()).maps;
  EXPECT_GE(maps.size(), 7U);
  EXPECT_EQ(daemons[0].end(SIGKILL), 128 + SIGKILL);
  auto why = own->lost();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->message,
            "NIC service at " + path(0) + ": unisonod has ended: it closed the connection");
  EXPECT_FALSE(own->status().ok());
  on(0, [] {
    while (programs_on_egress() != 0) std::this_thread::yield();
  });
  // The memory exists as long as a process maps it; writing to it is harmless.
  (*member)->mapping.memory().slots[0].waiting = 1;
  member->reset();
  for (const std::uint32_t map : maps) {
    while (map_exists(map)) std::this_thread::yield();
  }
  // The socket that is left is taken over.
  EXPECT_EQ(start(0), "unisonod: serves u0 (generic mode) at " + path(0));
  EXPECT_TRUE(client(0)->join(leaf_row(1)).ok());
}

TEST_F(Daemon, DrainsBeforeItStops) {
  start(0, {"--drain", "86400"});
  auto own = client(0), other = client(0);
  auto member = own->join(leaf_row(1));
  ASSERT_TRUE(member.ok()) << member.error().message;
  kill(daemons[0].pid(), SIGTERM);
  while (other->describe().ok()) std::this_thread::yield();
  const auto refused = other->join(leaf_row(2));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "unisonod: it is about to stop, and takes no new groups (--drain)");
  EXPECT_FALSE(own->lost());
  EXPECT_EQ(client(0)->status()->groups, 1U) << "it still answers";
  ASSERT_TRUE(own->leave((*member)->row.index).ok());
  EXPECT_EQ(daemons[0].wait(), 0);
  ASSERT_TRUE(own->lost());
}

TEST_F(Daemon, ASecondSignalEndsADrain) {
  start(0, {"--drain", "86400"});
  auto own = client(0);
  const auto member = own->join(leaf_row(1));
  ASSERT_TRUE(member.ok()) << member.error().message;
  kill(daemons[0].pid(), SIGTERM);
  while (client(0)->describe().ok()) std::this_thread::yield();
  EXPECT_EQ(daemons[0].end(SIGINT), 0);
  ASSERT_TRUE(own->lost());
}

TEST_F(Daemon, ADrainEndsWithItsTimeAndAtOnceWithoutGroups) {
  start(0, {"--drain", "1"});
  auto own = client(0);
  const auto member = own->join(leaf_row(1));
  ASSERT_TRUE(member.ok()) << member.error().message;
  EXPECT_EQ(daemons[0].end(SIGTERM), 0);
  ASSERT_TRUE(own->lost());
  start(0, {"--drain", "86400"});
  EXPECT_EQ(daemons[1].end(SIGTERM), 0);
}

TEST_F(Daemon, EndsInOrderWhenItsTerminalDoes) {
  start(0);
  EXPECT_EQ(daemons[0].end(SIGHUP), 0);
  EXPECT_FALSE(std::filesystem::exists(path(0)));
}

TEST_F(Daemon, OutlivesItsTerminalUnderNohup) {
  signal(SIGHUP, SIG_IGN);
  start(0);
  signal(SIGHUP, SIG_DFL);
  kill(daemons[0].pid(), SIGHUP);
  EXPECT_TRUE(client(0)->describe().ok());
  EXPECT_EQ(daemons[0].end(SIGTERM), 0);
}

TEST_F(Daemon, SaysWhenItIsStopped) {
  start(0);
  auto own = client(0);
  ASSERT_TRUE(own->describe().ok());
  EXPECT_EQ(daemons[0].end(SIGTERM), 0);
  const auto why = own->lost();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code, base::Code::cancelled);
  EXPECT_EQ(why->message, "unisonod was stopped; operations in the NIC path end");
  EXPECT_FALSE(std::filesystem::exists(path(0)));
  const auto nobody = ServiceClient::connect(path(0));
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.error().code, base::Code::unsupported);
  EXPECT_EQ(nobody.error().message,
            "NIC service at " + path(0) +
                ": No such file or directory; start it with `unisonod --interface NAME`");
}

TEST_F(Daemon, NonsenseEndsAConnectionAndNothingElse) {
  start(0);
  auto other = client(0);
  ASSERT_TRUE(other->join(leaf_row(1)).ok());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path(0).copy(address.sun_path, sizeof address.sun_path - 1);
  const base::Descriptor stranger(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(stranger.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(send(stranger.get(), "hello", 5, 0), 5);
  std::array<std::byte, kLongestMessage> bytes;
  const ssize_t length = recv(stranger.get(), bytes.data(), bytes.size(), 0);
  ASSERT_GT(length, 0);
  const auto answer = decode(std::span(bytes).first(static_cast<std::size_t>(length)));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(std::get<Refused>(*answer).text, "5 bytes that are no message of the NIC service");
  EXPECT_EQ(recv(stranger.get(), bytes.data(), bytes.size(), 0), 0);
  unisono_nic_row wrong = leaf_row(2);
  wrong.up.ipv4 = htonl(0x08080808);
  const auto refused = other->join(wrong);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("8.8.8.8"), std::string::npos);
  EXPECT_EQ(other->status()->groups, 1U);
}

// In a namespace of its own, a switch whose ports have a program. A veth's driver delivers a frame
// sent by the program only to an end whose driver has one, too. Only descriptors hold the programs.
class NativeDaemon : public Daemon {
 protected:
  void SetUp() override {
    Daemon::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    std::array<base::Descriptor, kHosts> spaces;
    for (int host = 0; host < kHosts; ++host) {
      on(host, [&] {
        expect_runs("! ip link show u0 > /dev/null 2>&1 || ip link delete u0");
        spaces[static_cast<std::size_t>(host)].reset(
            open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
      });
    }
    std::thread([&] { put_up_switch(spaces); }).join();
    for (int host = 0; host < kHosts; ++host) {
      on(host, [host] {
        expect_runs("ip address add 10.0.0." + std::to_string(host + 1) + "/24 dev u0");
        expect_runs("ip link set u0 up");
      });
    }
  }

  // Cables go before the next test's come, not when the kernel gets to it.
  void TearDown() override {
    Daemon::TearDown();
    for (int host = 0; switch_space_.valid() && host < kHosts; ++host) {
      on(host, [] { expect_runs("ip link delete u0"); });
    }
  }

  void put_up_switch(const std::array<base::Descriptor, kHosts>& spaces) {
    ASSERT_EQ(unshare(CLONE_NEWNET), 0);
    switch_space_.reset(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    expect_runs("ip link add br0 type bridge stp_state 0 mcast_snooping 0");
    expect_runs("ip link set br0 up");
    for (std::size_t host = 0; host < kHosts; ++host) {
      const std::string port = "p" + std::to_string(host);
      expect_runs("ip link add " + port + " type veth peer name u0 address 02:00:00:00:00:0" +
                  std::to_string(host + 1) + " netns /proc/" + std::to_string(getpid()) + "/fd/" +
                  std::to_string(spaces[host].get()));
      expect_runs("ip link set " + port + " master br0 up");
      pass_all(port, passing_[host]);
    }
  }

  static void expect_runs(const std::string& command) {
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }

  // A program in the port's driver that lets everything pass.
  static void pass_all(const std::string& port, base::Descriptor& link) {
    const bpf_insn instructions[] = {{BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, XDP_PASS},
                                     {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
    bpf_attr load = {};
    load.prog_type = BPF_PROG_TYPE_XDP;
    load.insn_cnt = std::size(instructions);
    load.insns = reinterpret_cast<std::uintptr_t>(instructions);
    load.license = reinterpret_cast<std::uintptr_t>("BSD");
    const base::Descriptor program(
        static_cast<int>(syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof load)));
    ASSERT_TRUE(program.valid()) << std::strerror(errno);
    bpf_attr attach = {};
    attach.link_create.prog_fd = static_cast<std::uint32_t>(program.get());
    attach.link_create.target_ifindex = if_nametoindex(port.c_str());
    attach.link_create.attach_type = BPF_XDP;
    attach.link_create.flags = XDP_FLAGS_DRV_MODE;
    link.reset(static_cast<int>(syscall(SYS_bpf, BPF_LINK_CREATE, &attach, sizeof attach)));
    ASSERT_TRUE(link.valid()) << std::strerror(errno);
  }

  // As the kernel reports it, and as the daemon does.
  void expect_mode(int host, const std::string& mode) {
    const std::string needs =
        mode == "native" ? "; the other end of a veth needs an XDP program in native mode, too"
                         : "";
    ASSERT_EQ(start(host, {"--mode", mode}),
              "unisonod: serves u0 (" + mode + " mode" + needs + ") at " + path(host));
    on(host, [&mode] {
      const std::string attached = attached_to_u0();
      EXPECT_NE(attached.find("xdp"), std::string::npos);
      EXPECT_EQ(attached.find("xdpgeneric") != std::string::npos, mode == "generic") << attached;
    });
    const auto served = client(host)->describe();
    ASSERT_TRUE(served.ok()) << served.error().message;
    EXPECT_EQ(served->native, mode == "native" ? 1 : 0);
  }

  void reduce_with(const std::array<const char*, kHosts>& modes) {
    for (int host = 0; host < kHosts; ++host) {
      ASSERT_NO_FATAL_FAILURE(expect_mode(host, modes[static_cast<std::size_t>(host)]));
    }
    chmod(folder.c_str(), 0777);  // where the ranks tell each other that they are there
    std::vector<Child> ranks;
    for (int rank = 0; rank < kHosts; ++rank) {
      ranks.push_back(as(kAnna, rank, [&] { return reduce_as(path(rank), rank); }));
    }
    for (Child& rank : ranks) EXPECT_EQ(rank.wait(), 0);
    const auto root = client(0)->status();
    const auto child = client(1)->status();
    ASSERT_TRUE(root.ok() && child.ok());
    EXPECT_EQ(root->counters[UNISONO_NIC_SENT_DOWN], kReductions);
    EXPECT_EQ(child->counters[UNISONO_NIC_SENT_UP], kReductions);
    EXPECT_EQ(child->counters[UNISONO_NIC_CAME_DOWN], kReductions);
    for (int host = 0; host < kHosts; ++host) {
      EXPECT_EQ(daemons[static_cast<std::size_t>(host)].end(SIGTERM), 0);
      on(host, [] {
        while (!attached_to_u0().empty()) std::this_thread::yield();
      });
    }
  }

 private:
  base::Descriptor switch_space_;
  std::array<base::Descriptor, kHosts> passing_;  // the ports' programs
};

TEST_F(NativeDaemon, ReducesInTheDriversOfAllHosts) { reduce_with({"native", "native"}); }

TEST_F(NativeDaemon, ReducesWithAChildInGenericMode) { reduce_with({"native", "generic"}); }

TEST_F(NativeDaemon, ReducesWithARootInGenericMode) { reduce_with({"generic", "native"}); }

TEST_F(Daemon, OneForEachSocketAndInterface) {
  start(0);
  EXPECT_NE(start(0).find("Device or resource busy"), std::string::npos);
  EXPECT_EQ(daemons[1].wait(), 1);
  EXPECT_TRUE(client(0)->describe().ok());
}

}  // namespace
}  // namespace unisono::nic::test::daemon_test
