// SPDX-License-Identifier: BSD-3-Clause
// unisonod itself, on hosts that are network namespaces, with clients of different users: processes
// without privilege reduce through the NIC path, nobody gets at another's, and nothing is left
// after any end of anybody.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "algorithm/algorithm.hpp"
#include "nic/frames.hpp"
#include "nic/hosts.hpp"
#include "nic/lower.hpp"
#include "nic/port.hpp"
#include "nic/row.hpp"
#include "nic/service/client.hpp"

namespace unisono::nic::test {
namespace {

constexpr uid_t kAnna = 54321;
constexpr uid_t kBert = 54322;
constexpr int kHosts = 2;

unisono_nic_row leaf_row(std::uint32_t communicator) {
  unisono_nic_row row = {};
  row.id = {4711, communicator};
  row.depth = 2;
  row.rank = 1;
  row.up = host_address(0);
  row.up.port = htons(kServicePort);
  row.down = multicast_address(htonl(0xEFFF0007), htons(kServicePort));
  return row;
}

// A child process, killed with this object.
class Child {
 public:
  Child() = default;
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&& other) noexcept {
    end(SIGKILL);
    pid_ = std::exchange(other.pid_, -1);
    return *this;
  }
  ~Child() { end(SIGKILL); }
  pid_t pid() const { return pid_; }
  // Its exit status; 128 + N if it was killed by signal N.
  int wait() {
    int status = 0;
    if (pid_ < 0 || waitpid(std::exchange(pid_, -1), &status, 0) < 0) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int end(int signal) {
    if (pid_ < 0) return -1;
    kill(pid_, signal);
    return wait();
  }

 private:
  pid_t pid_ = -1;
};

// How many programs look at what leaves u0 of the calling thread's host.
int programs_on_egress() {
  bpf_attr question = {};
  question.query.target_fd = if_nametoindex("u0");  // one place with target_ifindex
  question.query.attach_type = 47;                  // BPF_TCX_EGRESS
  if (syscall(SYS_bpf, BPF_PROG_QUERY, &question, sizeof question) != 0) return -1;
  return static_cast<int>(question.query.prog_cnt);
}

// The maps that a process has descriptors of.
std::vector<std::uint32_t> maps_of(pid_t process) {
  std::vector<std::uint32_t> maps;
  const auto folder = "/proc/" + std::to_string(process) + "/fdinfo";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    std::string line;
    while (std::getline(file, line)) {
      constexpr std::string_view kHead = "map_id:";
      if (line.starts_with(kHead)) {
        maps.push_back(static_cast<std::uint32_t>(std::stoul(line.substr(kHead.size()))));
      }
    }
  }
  return maps;
}

bool map_exists(std::uint32_t map) {
  bpf_attr question = {};
  question.map_id = map;
  const auto found =
      static_cast<int>(syscall(SYS_bpf, BPF_MAP_GET_FD_BY_ID, &question, sizeof question));
  if (found >= 0) close(found);
  return found >= 0;
}

class Daemon : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto trial = load_device({});
    auto made = trial.ok() ? Hosts::make(kHosts) : trial.error();
    if (made.ok())
      hosts = *std::move(made);
    else
      problem = made.error();
  }
  static void TearDownTestSuite() { hosts.reset(); }

  void SetUp() override {
    if (hosts == nullptr && problem.code == base::Code::unsupported)
      GTEST_SKIP() << problem.message;
    ASSERT_NE(hosts, nullptr) << problem.message;
    char name[] = "/tmp/unisonod_test_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
    ASSERT_EQ(chmod(name, 0755), 0);
  }
  void TearDown() override {
    for (Child& daemon : daemons) daemon.end(SIGKILL);
    for (int host = 0; hosts != nullptr && host < kHosts; ++host) {
      on(host, [] {
        while (programs_on_egress() != 0) std::this_thread::yield();
      });
    }
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }

  std::string path(int host) const { return folder + "/nic" + std::to_string(host); }

  static void on(int host, const std::function<void()>& body) {
    std::thread([&] {
      hosts->enter(host);
      body();
    }).join();
  }

  // A daemon on that host; returns what it says when it serves, or has given up.
  std::string start(int host, const std::vector<std::string>& more = {}) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
    std::vector<std::string> words = {"unisonod", "--interface", "u0", "--socket", path(host)};
    words.insert(words.end(), more.begin(), more.end());
    const pid_t pid = fork();
    if (pid == 0) {
      hosts->enter(host);
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      dup2(ends[1], STDERR_FILENO);
      execv(UNISONOD_PROGRAM, arguments.data());
      _exit(127);
    }
    close(ends[1]);
    daemons.emplace_back(pid);
    std::string said;
    char byte = 0;
    while (read(ends[0], &byte, 1) == 1 && byte != '\n') said += byte;
    close(ends[0]);
    return said;
  }

  // A process of that user on that host; its exit status is what the body returns.
  static Child as(uid_t user, int host, const std::function<int()>& body) {
    const pid_t pid = fork();
    if (pid == 0) {
      hosts->enter(host);
      if (setgid(user) != 0 || setuid(user) != 0) _exit(99);
      _exit(body());
    }
    return Child(pid);
  }

  std::unique_ptr<ServiceClient> client(int host) {
    auto made = ServiceClient::connect(path(host));
    if (made.ok()) return *std::move(made);
    ADD_FAILURE() << made.error().message;
    return nullptr;
  }

  static inline std::unique_ptr<Hosts> hosts;
  static inline base::Error problem;
  std::string folder;
  std::vector<Child> daemons;
};

// One rank of an allreduce of all hosts: each gives its number + operation. 0: all sums were right.
int reduce_as(const std::string& path, int rank) {
  auto client = ServiceClient::connect(path);
  if (!client.ok()) return 1;
  schedule::Shape shape;
  shape.collective = schedule::Collective::allreduce;
  shape.ranks = kHosts;
  shape.count = 1;
  const auto* tree = algorithm::find(shape.collective, "gather-release");
  const auto schedule = algorithm::build(*tree, shape, {{1}}, rank);
  std::vector<unisono_nic_address> addresses;
  for (int i = 0; i < kHosts; ++i) {
    addresses.push_back(host_address(i));
    addresses.back().port = htons(kServicePort);
  }
  GroupAddresses group;
  group.id = {99, 1};
  group.key = {1, 2};
  group.ranks = addresses;
  group.multicast = multicast_address(htonl(0xEFFF0007), htons(kServicePort));
  const auto row = make_row(*lower(*schedule), group);
  const auto member = (*client)->join(*row);
  if (!member.ok()) return 2;
  const auto port = Port::open((*member)->row, (*member)->mapping.memory());
  if (!port.ok()) return 3;
  // What is sent to a host whose group is not there yet is lost, so all have to be.
  const auto mark = [&](int of) {
    return path.substr(0, path.rfind('/')) + "/ready" + std::to_string(of);
  };
  close(open(mark(rank).c_str(), O_CREAT | O_WRONLY, 0644));
  for (int other = 0; other < kHosts; ++other) {
    while (access(mark(other).c_str(), F_OK) != 0) std::this_thread::yield();
  }
  for (std::uint64_t operation = 0; operation < 200; ++operation) {
    const std::uint64_t given = operation * 10 + static_cast<std::uint64_t>(rank);
    if (!(*port)->post(UNISONO_NIC_SUM_INT64, std::span(&given, 1)).ok()) return 4;
    while (!(*port)->is_done(operation)) std::this_thread::yield();
    if ((*port)->result(operation)[0] != operation * 20 + 1) return 5;
  }
  return (*client)->leave((*member)->row.index).ok() ? 0 : 6;
}

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
  const auto maps = maps_of(daemons[0].pid());
  EXPECT_EQ(victim.end(SIGKILL), 128 + SIGKILL);
  while (observer->status()->groups != 0) std::this_thread::yield();
  EXPECT_EQ(maps_of(daemons[0].pid()).size() + 4, maps.size()) << "two groups of two maps each";
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
  const auto maps = maps_of(daemons[0].pid());
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
  // The memory is there as long as somebody maps it; to write to it does no harm.
  (*member)->mapping.memory().slots[0].waiting = 1;
  member->reset();
  for (const std::uint32_t map : maps) {
    while (map_exists(map)) std::this_thread::yield();
  }
  // The socket that is left is taken over.
  EXPECT_EQ(start(0), "unisonod: serves u0 (generic mode) at " + path(0));
  EXPECT_TRUE(client(0)->join(leaf_row(1)).ok());
}

TEST_F(Daemon, SaysWhenItIsStopped) {
  start(0);
  auto own = client(0);
  ASSERT_TRUE(own->describe().ok());
  EXPECT_EQ(daemons[0].end(SIGTERM), 0);
  const auto why = own->lost();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code, base::Code::cancelled);
  EXPECT_EQ(why->message, "unisonod was stopped; what runs in the NIC path ends");
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

TEST_F(Daemon, OneForEachSocketAndInterface) {
  start(0);
  EXPECT_NE(start(0).find("Device or resource busy"), std::string::npos);
  EXPECT_EQ(daemons[1].wait(), 1);
  EXPECT_TRUE(client(0)->describe().ok());
}

}  // namespace
}  // namespace unisono::nic::test
