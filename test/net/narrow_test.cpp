// SPDX-License-Identifier: BSD-3-Clause
// A link with a smaller limit than the interfaces at both ends report, for datagrams that are sent
// separately. The kernel's bridge drops longer ones without a report. All collectives end with
// right results, and the log names the narrow path.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "net/host_ranks.hpp"

namespace unisono::harness::narrow_test {
namespace {

constexpr const char* kNote = "the path carries less than the interface says";
constexpr int kDoubles = 165;  // fill one packet of an MTU of 1500

class HostsNarrow : public HostsTest {
 protected:
  // At the switch; the host and the others keep 1500.
  void narrow_link_of(int host) {
    const std::string command = fmt::format("nsenter -t {} -n ip link set {}{} mtu 1300",
                                            hosts_.record().keeper, hosts_.record().name, host + 1);
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
};

void broadcast_from(const HostRank& self, int root, int round) {
  std::vector<double> data(kDoubles, self.rank == root ? 1000.0 * round + root : -1);
  ASSERT_TRUE(
      succeeded(unisono_broadcast(data.data(), kDoubles, UNISONO_FLOAT64, root, self.world)));
  ASSERT_EQ(data, std::vector<double>(kDoubles, 1000.0 * round + root));
}

void add_up(const HostRank& self, std::size_t count, int round) {
  const std::vector<double> in(count, self.rank + round);
  std::vector<double> out(count);
  ASSERT_TRUE(succeeded(unisono_allreduce(in.data(), out.data(), static_cast<std::int64_t>(count),
                                          UNISONO_FLOAT64, UNISONO_SUM, self.world)));
  ASSERT_EQ(out,
            std::vector<double>(count, self.ranks * round + self.ranks * (self.ranks - 1) / 2));
}

void work(const HostRank& self, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (int root = 0; root < self.ranks; ++root) {
      ASSERT_NO_FATAL_FAILURE(broadcast_from(self, root, round));
    }
    for (const std::size_t count :
         {std::size_t{kDoubles}, std::size_t{1000}, std::size_t{20'000}}) {
      ASSERT_NO_FATAL_FAILURE(add_up(self, count, round));
    }
  }
}

// The text that the rank writes to stderr from now on.
std::function<std::string()> capture_log() {
  const int file = memfd_create("log", MFD_CLOEXEC);
  EXPECT_GE(file, 0);
  EXPECT_EQ(dup2(file, STDERR_FILENO), STDERR_FILENO);
  return [file] {
    std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_END)), ' ');
    EXPECT_EQ(pread(file, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  };
}

std::vector<HostProcess> start_noting(const TestHosts& hosts, const std::string& multicast,
                                      const RankBody& body) {
  std::vector<HostProcess> processes;
  for (int rank = 0; rank < kRanks; ++rank) {
    processes.push_back(hosts.start(host_of(rank), [=, &body](const Line& line) {
      const auto log = capture_log();
      set_environment(rank);
      setenv("UNISONO_MULTICAST", multicast.c_str(), 1);
      unisono_comm_t world = nullptr;
      ASSERT_TRUE(succeeded(unisono_init(&world)));
      const HostRank self{rank, kRanks, world, line};
      body(self);
      leave(self);
      line.say(log().find(kNote) != std::string::npos ? "noted" : "nothing");
    }));
  }
  return processes;
}

int expect_clean_and_count_notes(std::vector<HostProcess>& processes) {
  int notes = 0;
  for (HostProcess& each : processes) notes += each.line().hear() == "noted" ? 1 : 0;
  expect_all_clean(processes);
  return notes;
}

TEST_F(HostsNarrow, FromTheStart) {
  narrow_link_of(2);
  for (const char* multicast : {"off", "on"}) {
    auto processes = start_noting(hosts_, multicast, [](const HostRank& self) { work(self, 10); });
    EXPECT_GT(expect_clean_and_count_notes(processes), 0) << "multicast " << multicast;
  }
}

TEST_F(HostsNarrow, FromTheMiddleOfTheJobOn) {
  auto processes = start_noting(hosts_, "on", [](const HostRank& self) {
    work(self, 3);
    self.line.say("ready");
    self.line.hear();
    work(self, 10);
  });
  for (const HostProcess& each : processes) EXPECT_EQ(each.line().hear(), "ready");
  narrow_link_of(0);
  for (const HostProcess& each : processes) each.line().say("go");
  EXPECT_GT(expect_clean_and_count_notes(processes), 0);
}

// A user who sets the limit has no cost.
TEST_F(HostsNarrow, ShortDatagramsFromTheStart) {
  narrow_link_of(1);
  setenv("UNISONO_DATAGRAM", "1272", 1);
  auto processes = start_noting(hosts_, "on", [](const HostRank& self) { work(self, 10); });
  unsetenv("UNISONO_DATAGRAM");
  EXPECT_EQ(expect_clean_and_count_notes(processes), 0);
}

}  // namespace
}  // namespace unisono::harness::narrow_test
