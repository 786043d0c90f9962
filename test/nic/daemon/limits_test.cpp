// SPDX-License-Identifier: BSD-3-Clause
// What one user can do to unisonod within its quota, or because the system has run out of
// something: others are served nevertheless, and nothing spins.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "nic/daemon/daemon_hosts.hpp"

namespace unisono::nic::test::limits_test {
namespace {

class Limits : public Daemon {
 protected:
  // A daemon whose process runs `prepare` first; returns when it serves.
  void start_as(const std::function<void()>& prepare, const std::vector<std::string>& more = {}) {
    daemons.push_back(as(0, 0, [&] {
      prepare();
      std::vector<std::string> words = {"unisonod", "--interface", "u0", "--socket", path(0)};
      words.insert(words.end(), more.begin(), more.end());
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      execv(UNISONOD_PROGRAM, arguments.data());
      return 127;
    }));
    while (!ServiceClient::connect(path(0)).ok()) std::this_thread::yield();
  }
  // Whether the daemon waits without computing, sooner or later. One that spins never does.
  bool comes_to_rest() const {
    const std::string file = "/proc/" + std::to_string(daemons[0].pid()) + "/stat";
    for (int look = 0; look < 2000; ++look) {
      std::ifstream stat(file);
      std::string line;
      std::getline(stat, line);
      const std::size_t name_end = line.rfind(')');
      if (name_end != std::string::npos && line.at(name_end + 2) == 'S') return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  std::set<rlim_t> descriptors_of_daemon() const {
    std::set<rlim_t> numbers;
    const std::string place = "/proc/" + std::to_string(daemons[0].pid()) + "/fd";
    for (const auto& file : std::filesystem::directory_iterator(place)) {
      numbers.insert(std::stoul(file.path().filename()));
    }
    return numbers;
  }
};

std::string message_of(const auto& outcome) {
  return outcome.ok() ? std::string() : outcome.error().message;
}

// One user has all the connections and groups that it can get; another one comes.
TEST_F(Limits, OneUserDoesNotTakeAllDescriptors) {
  constexpr rlim_t kDescriptors = 160;
  start_as(
      [] {
        const rlimit few = {kDescriptors, kDescriptors};
        setrlimit(RLIMIT_NOFILE, &few);
      },
      {"--connections-per-user", "1000", "--groups-per-user", "1000", "--descriptors-per-user",
       "1000"});
  std::vector<std::unique_ptr<ServiceClient>> connections;
  std::string refused;
  while (refused.empty() && connections.size() < kDescriptors) {
    connections.push_back(client(0));
    refused = message_of(connections.back()->describe());
  }
  EXPECT_NE(refused.find("of 24 connections, of which 3 are kept for users with fewer than 8"),
            std::string::npos)
      << refused;
  connections.pop_back();
  refused.clear();
  std::vector<std::unique_ptr<Membership>> groups;
  for (std::uint32_t i = 0; refused.empty() && i < kDescriptors; ++i) {
    auto joined = connections.front()->join(leaf_row(100 + i));
    refused = message_of(joined);
    if (joined.ok()) groups.push_back(*std::move(joined));
  }
  EXPECT_NE(refused.find("file descriptors for groups"), std::string::npos) << refused;
  EXPECT_LT(descriptors_of_daemon().size(), kDescriptors - 16);
  Child bert = as(kBert, 0, [&] {
    const auto own = ServiceClient::connect(path(0));
    return own.ok() && (*own)->join(leaf_row(1)).ok() ? 0 : 1;
  });
  EXPECT_EQ(bert.wait(), 0);
  EXPECT_TRUE(comes_to_rest());
}

// The whole system may be short of descriptors, too.
TEST_F(Limits, ADaemonThatCannotAcceptPauses) {
  start(0);
  const auto served = client(0);
  const auto group = served->join(leaf_row(1));
  ASSERT_TRUE(group.ok()) << group.error().message;
  rlimit usual = {};
  ASSERT_EQ(prlimit(daemons[0].pid(), RLIMIT_NOFILE, nullptr, &usual), 0);
  rlimit none = {0, usual.rlim_max};  // the next descriptor would have this number
  while (descriptors_of_daemon().contains(none.rlim_cur)) ++none.rlim_cur;
  ASSERT_EQ(prlimit(daemons[0].pid(), RLIMIT_NOFILE, &none, nullptr), 0);
  const auto waiting = client(0);  // the kernel has it, and the daemon cannot
  std::thread restores([&] {
    EXPECT_TRUE(comes_to_rest());
    EXPECT_TRUE(served->leave((*group)->row.index).ok()) << "who is connected is served";
    EXPECT_TRUE(comes_to_rest());
    EXPECT_EQ(prlimit(daemons[0].pid(), RLIMIT_NOFILE, &usual, nullptr), 0);
  });
  EXPECT_TRUE(waiting->describe().ok()) << "in the end";
  restores.join();
}

TEST_F(Limits, MemoryCountsForAsLongAsAProcessKeepsIt) {
  const std::uint64_t bytes = memory_bytes(leaf_row(1));
  start(0, {"--memory-per-user", std::to_string(bytes + bytes / 2)});
  Child anna = as(kAnna, 0, [&] {
    auto own = ServiceClient::connect(path(0));
    if (!own.ok()) return 1;
    auto first = (*own)->join(leaf_row(1));
    if (!first.ok()) return 2;
    if (!(*own)->leave((*first)->row.index).ok()) return 3;
    if (message_of((*own)->join(leaf_row(2))).find("in groups that it has left") ==
        std::string::npos) {
      return 4;
    }
    // Also if the connection has ended, and if nothing but the mappings is left.
    own = ServiceClient::connect(path(0));
    (*first)->wakes.clear();
    if (!own.ok() || (*own)->join(leaf_row(3)).ok()) return 5;
    first->reset();
    return (*own)->join(leaf_row(4)).ok() ? 0 : 6;
  });
  EXPECT_EQ(anna.wait(), 0);
}

TEST_F(Limits, WhoJoinsTooOftenWaitsAndIsNotRefused) {
  constexpr int kBurst = 2, kPerSecond = 4, kJoins = 8;
  start(0, {"--groups-per-user", std::to_string(kBurst), "--joins-per-second",
            std::to_string(kPerSecond)});
  const auto own = client(0);
  const std::int64_t start_ns = base::now_ns();
  for (std::uint32_t i = 1; i <= kJoins; ++i) {
    const auto joined = own->join(leaf_row(i));
    ASSERT_TRUE(joined.ok()) << joined.error().message;
    ASSERT_TRUE(own->leave((*joined)->row.index).ok());
  }
  EXPECT_GE(base::now_ns() - start_ns, (kJoins - kBurst - 1) * base::kSecond / kPerSecond);
}

// A connection that the daemon has accepted; the test controls what it sends and when.
base::Descriptor connect_to(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  base::Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
  return socket;
}

bool say(const base::Descriptor& socket, const Message& message) {
  const std::vector<std::byte> bytes = encode(message);
  return send(socket.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
}

std::optional<Message> hear(const base::Descriptor& socket) {
  std::vector<std::byte> bytes(kLongestMessage);
  const ssize_t length = recv(socket.get(), bytes.data(), bytes.size(), 0);
  if (length <= 0) return std::nullopt;
  auto message = decode(std::span(bytes).first(static_cast<std::size_t>(length)));
  return message.ok() ? std::optional(*std::move(message)) : std::nullopt;
}

// Each of many connections of one user asks for a group. Then another user asks, and its answer
// shows how many were served before.
TEST_F(Limits, AUserWaitsForOneMessageOfAnotherWhateverItsConnections) {
  constexpr std::uint32_t kConnections = 30;
  start(0);
  std::vector<base::Descriptor> many;
  for (std::uint32_t i = 0; i < kConnections; ++i) {
    many.push_back(connect_to(path(0)));
    ASSERT_TRUE(say(many.back(), Describe{}) && hear(many.back()));
  }
  int asked[2], go[2];
  ASSERT_TRUE(pipe(asked) == 0 && pipe(go) == 0);
  Child bert = as(kBert, 0, [&] {
    const base::Descriptor own = connect_to(path(0));
    char letter = 'y';
    if (!say(own, Describe{}) || !hear(own) || write(asked[1], &letter, 1) != 1) return 100;
    if (read(go[0], &letter, 1) != 1 || !say(own, AskStatus{})) return 101;
    if (write(asked[1], &letter, 1) != 1) return 102;
    const auto answer = hear(own);
    const auto* status = answer ? std::get_if<ServiceStatus>(&*answer) : nullptr;
    return status == nullptr ? 103 : static_cast<int>(status->groups);
  });
  char letter = 'g';
  ASSERT_EQ(read(asked[0], &letter, 1), 1);
  daemons[0].stop();
  for (std::uint32_t i = 0; i < kConnections; ++i) ASSERT_TRUE(say(many[i], Join{leaf_row(1 + i)}));
  ASSERT_EQ(write(go[1], &letter, 1), 1);
  ASSERT_EQ(read(asked[0], &letter, 1), 1);
  ASSERT_EQ(kill(daemons[0].pid(), SIGCONT), 0);
  EXPECT_LE(bert.wait(), 1) << "groups that were joined before";
  for (const int end : {asked[0], asked[1], go[0], go[1]}) close(end);
}

// One line for each would fill the disk.
TEST_F(Limits, NonsenseFillsNoLog) {
  const std::string log = folder + "/log";
  start_as([&log] {
    if (freopen(log.c_str(), "w", stderr) == nullptr) _exit(126);
  });
  constexpr int kTimes = 300;
  for (int i = 0; i < kTimes; ++i) {
    const base::Descriptor stranger = connect_to(path(0));
    ASSERT_EQ(send(stranger.get(), "hello", 5, 0), 5);
    ASSERT_TRUE(hear(stranger)) << "why it is refused";
  }
  EXPECT_EQ(daemons[0].end(SIGTERM), 0);
  std::ifstream file(log);
  int lines = 0;
  for (std::string line; std::getline(file, line);) {
    lines += line.find("bytes that are no message") != std::string::npos;
  }
  EXPECT_GT(lines, 0);
  EXPECT_LT(lines, kTimes / 10);
}

}  // namespace
}  // namespace unisono::nic::test::limits_test
