// SPDX-License-Identifier: BSD-3-Clause
// Test hosts end to end: they are hosts of their own and reach each other, the machine does not
// notice them, nothing of them is left however they end, and their links and routes are as planned.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>

#include "harness/hosts.hpp"
#include "hosts/process_descriptor.hpp"

namespace unisono::hosts_test {
namespace {

using harness::HostProcess;
using harness::Line;
using harness::TestHosts;

constexpr std::uint16_t kPort = 5000;  // the hosts' networks are theirs alone

std::string file_text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> entries(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string host_name_here() {
  std::array<char, 65> name{};
  gethostname(name.data(), name.size());
  return name.data();
}

sockaddr_in address(const std::string& text, std::uint16_t port = kPort) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, text.c_str(), &result.sin_addr), 1) << text;
  return result;
}

base::Descriptor bound_socket(int type, const std::string& where) {
  base::Descriptor result(socket(AF_INET, type, 0));
  const sockaddr_in to = address(where);
  EXPECT_EQ(bind(result.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0)
      << where << ": " << std::strerror(errno);
  return result;
}

void send_text(const base::Descriptor& from, const sockaddr_in& to, const std::string& text) {
  EXPECT_EQ(sendto(from.get(), text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&to),
                   sizeof to),
            static_cast<ssize_t>(text.size()))
      << std::strerror(errno);
}

std::string receive_text(const base::Descriptor& from) {
  std::array<char, 2048> text{};
  const ssize_t count = recv(from.get(), text.data(), text.size(), 0);
  EXPECT_GE(count, 0) << std::strerror(errno);
  return {text.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

// Connects by name to every host, and is connected to by every host.
void meet_all(const TestHosts& hosts, int me, const Line& line) {
  const base::Descriptor listening = bound_socket(SOCK_STREAM, "0.0.0.0");
  ASSERT_EQ(listen(listening.get(), hosts.size()), 0);
  line.say("listening");
  ASSERT_EQ(line.hear(), "go");
  for (const tools::HostEntry& host : hosts.record().hosts) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    addrinfo* found = nullptr;
    ASSERT_EQ(getaddrinfo(host.name.c_str(), "5000", &hints, &found), 0) << host.name;
    const base::Descriptor out(socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(connect(out.get(), found->ai_addr, found->ai_addrlen), 0)
        << host.name << ": " << std::strerror(errno);
    freeaddrinfo(found);
    const char mine = static_cast<char>(me);
    ASSERT_EQ(send(out.get(), &mine, 1, 0), 1);
  }
  std::vector<int> callers;
  for (int i = 0; i < hosts.size(); ++i) {
    const base::Descriptor in(accept(listening.get(), nullptr, nullptr));
    char who = 0;
    ASSERT_EQ(recv(in.get(), &who, 1, MSG_WAITALL), 1);
    callers.push_back(who);
  }
  std::sort(callers.begin(), callers.end());
  for (int i = 0; i < hosts.size(); ++i) EXPECT_EQ(callers[static_cast<std::size_t>(i)], i);
}

void expect_all_meet(const TestHosts& hosts) {
  std::vector<HostProcess> processes;
  for (int host = 0; host < hosts.size(); ++host) {
    processes.push_back(
        hosts.start(host, [&hosts, host](const Line& line) { meet_all(hosts, host, line); }));
  }
  for (const HostProcess& each : processes) EXPECT_EQ(each.line().hear(), "listening");
  for (const HostProcess& each : processes) each.line().say("go");
  for (HostProcess& each : processes) EXPECT_EQ(each.wait(), 0);
}

// The parts of the machine's state that a set of hosts could have changed.
struct MachineState {
  std::string name = host_name_here();
  std::vector<std::string> links = entries("/sys/class/net");
  std::string mounts = file_text("/proc/self/mountinfo");
};

// Whether some process is in the network namespace.
bool is_inhabited(ino_t network) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    struct stat found {};
    if (stat((entry.path() / "ns/net").c_str(), &found) == 0 && found.st_ino == network)
      return true;
  }
  return false;
}

// A host with a process that has left its parent, and how to tell that all of it has gone.
struct Inhabited {
  explicit Inhabited(const TestHosts& hosts) {
    HostProcess process = hosts.start(0, [](const Line& line) {
      if (fork() == 0) {
        setsid();
        for (;;) pause();  // holds its end of the line
      }
      struct stat here {};
      EXPECT_EQ(stat("/proc/self/ns/net", &here), 0);
      line.say(std::to_string(here.st_ino));
      line.hear();
    });
    network = std::stoul(process.line().hear());
    EXPECT_TRUE(is_inhabited(network));
    process.line().say("leave");
    end_of_it = std::make_unique<Line>(process.take_line());
    EXPECT_EQ(process.wait(), 0);
    EXPECT_TRUE(is_inhabited(network));
  }
  void expect_gone() const {
    EXPECT_EQ(end_of_it->hear(), "");  // its end, once no process holds the other
    EXPECT_FALSE(is_inhabited(network));
  }

  ino_t network = 0;
  std::unique_ptr<Line> end_of_it;
};

bool is_listed(const std::string& name) {
  const auto records = tools::list_hosts();
  EXPECT_TRUE(records.ok());
  return std::any_of(records.value().begin(), records.value().end(),
                     [&name](const tools::HostsRecord& each) { return each.name == name; });
}

bool has_file(const std::string& name) {
  return std::filesystem::exists("/run/unisono/hosts/" + name);
}

TEST(NetHosts, ReachEachOtherByName) {
  const TestHosts hosts = TestHosts::up(4);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  expect_all_meet(hosts);
}

TEST(NetHosts, AreHostsOfTheirOwn) {
  const TestHosts hosts = TestHosts::up(2);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  const int outside = shmget(IPC_PRIVATE, 4096, 0600);
  ASSERT_GE(outside, 0);
  const auto look = [&hosts, outside](int host) {
    return [&hosts, host, outside](const Line& line) {
      EXPECT_EQ(host_name_here(), hosts.record().hosts[static_cast<std::size_t>(host)].name);
      EXPECT_EQ(entries("/sys/class/net"), (std::vector<std::string>{"eth0", "lo"}));
      EXPECT_TRUE(entries("/dev/shm").empty());
      std::ofstream("/dev/shm/mine") << host;
      line.say("written");
      line.hear();
      EXPECT_EQ(file_text("/dev/shm/mine"), std::to_string(host));
      EXPECT_EQ(shmat(outside, nullptr, 0), reinterpret_cast<void*>(-1))
          << "System V IPC is shared";
      // /proc is the set's: its process 1 is the keeper.
      EXPECT_EQ(file_text("/proc/1/comm"), "unisono-hosts\n");
    };
  };
  HostProcess first = hosts.start(0, look(0));
  HostProcess second = hosts.start(1, look(1));
  for (const HostProcess* each : {&first, &second}) EXPECT_EQ(each->line().hear(), "written");
  for (const HostProcess* each : {&first, &second}) each->line().say("go");
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  EXPECT_EQ(shmctl(outside, IPC_RMID, nullptr), 0);
  EXPECT_FALSE(std::filesystem::exists("/dev/shm/mine"));
}

TEST(NetHosts, KeepFolderAndEnvironment) {
  const TestHosts hosts = TestHosts::up(1);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  const std::filesystem::path here = std::filesystem::current_path();
  EXPECT_EQ(
      hosts.run(0, [&here](const Line&) { EXPECT_EQ(std::filesystem::current_path(), here); }), 0);
}

TEST(NetHosts, TheMachineDoesNotNotice) {
  const MachineState before;
  {
    const TestHosts hosts = TestHosts::up(3);
    if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
    const TestHosts others = TestHosts::up(2);  // with the same addresses
    expect_all_meet(hosts);
    expect_all_meet(others);
    const MachineState during;
    EXPECT_EQ(during.name, before.name);
    EXPECT_EQ(during.links, before.links);
    EXPECT_EQ(during.mounts, before.mounts);
  }
  const MachineState after;
  EXPECT_EQ(after.name, before.name);
  EXPECT_EQ(after.links, before.links);
  EXPECT_EQ(after.mounts, before.mounts);
}

TEST(NetHosts, ANameIsTakenOnce) {
  const TestHosts hosts = TestHosts::up(1);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  tools::HostsPlan again;
  again.name = hosts.record().name;
  again.hosts = 1;
  const auto refused = tools::make_hosts(again, getpid());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("are up already"), std::string::npos);
  EXPECT_TRUE(is_listed(again.name));
}

TEST(NetHosts, NothingIsLeftAfterDown) {
  const TestHosts hosts = TestHosts::up(2);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  const Inhabited host(hosts);
  EXPECT_TRUE(tools::remove_hosts(hosts.record()).ok());
  host.expect_gone();
  EXPECT_FALSE(has_file(hosts.record().name));
  EXPECT_TRUE(tools::remove_hosts(hosts.record()).ok()) << "a second time";
}

TEST(NetHosts, NothingIsLeftAfterTheOwnerIsKilled) {
  const pid_t owner = fork();
  if (owner == 0) {
    for (;;) pause();
  }
  tools::HostsPlan plan;
  plan.hosts = 2;
  const TestHosts hosts = TestHosts::up(plan, owner);
  kill(owner, SIGKILL);
  if (!hosts.reason_to_skip().empty()) {
    waitpid(owner, nullptr, 0);
    GTEST_SKIP() << hosts.reason_to_skip();
  }
  const base::Descriptor keeper = tools::open_process(hosts.record().keeper);
  waitpid(owner, nullptr, 0);
  if (keeper.valid()) {  // else it has ended already
    pollfd ended{keeper.get(), POLLIN, 0};
    EXPECT_EQ(poll(&ended, 1, -1), 1);
  }
  EXPECT_FALSE(has_file(hosts.record().name));
  EXPECT_FALSE(is_listed(hosts.record().name));
}

TEST(NetHosts, NothingIsLeftAfterTheKeeperIsKilled) {
  const TestHosts hosts = TestHosts::up(2);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  const Inhabited host(hosts);
  // It ends after all processes of its hosts have.
  const base::Descriptor keeper = tools::open_process(hosts.record().keeper);
  ASSERT_TRUE(keeper.valid());
  EXPECT_EQ(kill(hosts.record().keeper, SIGKILL), 0);
  pollfd ended{keeper.get(), POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, -1), 1);
  host.expect_gone();
  EXPECT_FALSE(is_listed(hosts.record().name));
  EXPECT_FALSE(has_file(hosts.record().name)) << "whoever looks removes the file of a dead set";
}

TEST(NetHosts, OthersThanRootAreToldSo) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0 && setuid(kNobody) != 0) _exit(2);
    tools::HostsPlan plan;
    plan.name = harness::unique_hosts_name();
    plan.hosts = 1;
    const auto made = tools::make_hosts(plan, 0);
    const bool told = !made.ok() && made.error().code == base::Code::unsupported &&
                      made.error().message.find("run it as root") != std::string::npos;
    _exit(told ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Nothing can pass a link faster than its rate; that all of it arrives says that it passes.
TEST(NetHosts, ARateLimitsEveryLink) {
  constexpr std::int64_t kRate = 100'000'000;
  constexpr std::size_t kBytes = 4'000'000;
  constexpr double kLoose = 0.8;  // allows for the burst of the filter
  tools::HostsPlan plan;
  plan.hosts = 2;
  plan.rate_bits = kRate;
  const TestHosts hosts = TestHosts::up(plan);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  HostProcess receiver = hosts.start(1, [](const Line& line) {
    const base::Descriptor listening = bound_socket(SOCK_STREAM, "0.0.0.0");
    ASSERT_EQ(listen(listening.get(), 1), 0);
    line.say("listening");
    const base::Descriptor in(accept(listening.get(), nullptr, nullptr));
    const std::int64_t begun_ns = base::now_ns();
    std::vector<char> buffer(kBytes);
    EXPECT_EQ(recv(in.get(), buffer.data(), kBytes, MSG_WAITALL), static_cast<ssize_t>(kBytes));
    line.say(std::to_string(base::now_ns() - begun_ns));
  });
  EXPECT_EQ(receiver.line().hear(), "listening");
  EXPECT_EQ(
      hosts.run(
          0,
          [](const Line&) {
            const base::Descriptor out(socket(AF_INET, SOCK_STREAM, 0));
            const sockaddr_in to = address("10.77.0.2");
            ASSERT_EQ(connect(out.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
            const std::vector<char> buffer(kBytes, 'x');
            EXPECT_EQ(send(out.get(), buffer.data(), kBytes, 0), static_cast<ssize_t>(kBytes));
          }),
      0);
  const double took_ns = std::stod(receiver.line().hear());
  EXPECT_EQ(receiver.wait(), 0);
  EXPECT_GT(took_ns, kLoose * 8.0 * kBytes / kRate * static_cast<double>(base::kSecond));
}

tools::HostsPlan tree_of_16() {
  tools::HostsPlan plan;
  plan.hosts = 16;
  plan.shape = tools::HostsShape::tree;
  plan.rate_bits = 200'000'000;
  return plan;
}

// Packets that each port of the switches has sent, by its name.
std::map<std::string, long> packets_sent(const TestHosts& hosts) {
  const base::Descriptor keeper = tools::open_process(hosts.record().keeper);
  const base::Descriptor here(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(setns(keeper.get(), CLONE_NEWNET), 0);
  const std::string text = file_text("/proc/self/net/dev");
  EXPECT_EQ(setns(here.get(), CLONE_NEWNET), 0);
  std::map<std::string, long> result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t first = line.find_first_not_of(' ');
    std::istringstream numbers(line.substr(colon + 1));
    const std::vector<long> values(std::istream_iterator<long>(numbers), {});
    constexpr std::size_t kSentPackets = 9;
    EXPECT_GT(values.size(), kSentPackets);
    result[line.substr(first, colon - first)] = values[kSentPackets];
  }
  return result;
}

TEST(NetHosts, ATreeHasOneRouteForEachPair) {
  constexpr int kPackets = 100;
  const TestHosts hosts = TestHosts::up(tree_of_16());
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  expect_all_meet(hosts);
  const auto before = packets_sent(hosts);
  HostProcess receiver = hosts.start(5, [](const Line& line) {
    const base::Descriptor in = bound_socket(SOCK_DGRAM, "0.0.0.0");
    line.say("bound");
    for (int i = 0; i < kPackets; ++i) receive_text(in);
  });
  EXPECT_EQ(receiver.line().hear(), "bound");
  EXPECT_EQ(hosts.run(0,
                      [](const Line&) {
                        const base::Descriptor out(socket(AF_INET, SOCK_DGRAM, 0));
                        for (int i = 0; i < kPackets; ++i)
                          send_text(out, address("10.77.0.6"), "x");
                      }),
            0);
  EXPECT_EQ(receiver.wait(), 0);
  auto after = packets_sent(hosts);
  // Host 5 is on leaf 1, and 5 modulo 4 is spine 1. All other packets are neighbour discovery.
  for (int spine = 0; spine < 4; ++spine) {
    const std::string up = fmt::format("l0s{}", spine);
    const long sent = after.at(up) - before.at(up);
    if (spine == 1) {
      EXPECT_GE(sent, kPackets) << up;
    } else {
      EXPECT_LT(sent, kPackets) << up;
    }
  }
  EXPECT_GE(after.at("s1l1") - before.at("s1l1"), kPackets);
}

// A loop among the switches would double packets, or worse.
TEST(NetHosts, MulticastInATreeReachesEveryHostOnce) {
  constexpr int kPackets = 10;
  const TestHosts hosts = TestHosts::up(tree_of_16());
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  std::vector<HostProcess> receivers;
  for (int host = 1; host < hosts.size(); ++host) {
    receivers.push_back(hosts.start(host, [](const Line& line) {
      const base::Descriptor in = bound_socket(SOCK_DGRAM, "239.77.0.1");
      ip_mreqn group{};
      group.imr_multiaddr = address("239.77.0.1").sin_addr;
      ASSERT_EQ(setsockopt(in.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group), 0);
      line.say("joined");
      for (int i = 0; i < kPackets; ++i) EXPECT_EQ(receive_text(in), std::to_string(i));
    }));
  }
  for (const HostProcess& each : receivers) EXPECT_EQ(each.line().hear(), "joined");
  EXPECT_EQ(hosts.run(0,
                      [](const Line&) {
                        const base::Descriptor out(socket(AF_INET, SOCK_DGRAM, 0));
                        for (int i = 0; i < kPackets; ++i)
                          send_text(out, address("239.77.0.1"), std::to_string(i));
                      }),
            0);
  for (HostProcess& each : receivers) EXPECT_EQ(each.wait(), 0);
}

}  // namespace
}  // namespace unisono::hosts_test
