// SPDX-License-Identifier: BSD-3-Clause
// Whole jobs whose multicasts go by verbs over soft-RoCE, in the virtual machine of
// `./dev test --vm`.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "harness/all_results.hpp"
#include "harness/own_stderr.hpp"
#include "nic/job/shared_counts.hpp"
#include "vm/vm_hosts.hpp"
#include "vm/vm_test.hpp"

namespace unisono::harness::verbs_multicast_job_test {
namespace {

const VmSettings kByVerbs = {{"UNISONO_MULTICAST_BY", "verbs"},
                             {"UNISONO_MULTICAST", "on"},
                             {"UNISONO_LOG", "info"},
                             {"UNISONO_DETECT_TIMEOUT_HOSTS", "120s"}};

class VerbsMulticastJob : public VmTest {};

void check_a_few(const VmRank& self) {
  for (const std::int64_t count : {1, 1000}) {
    ASSERT_NO_FATAL_FAILURE(check_reductions(self, count, self.ranks - 1));
    ASSERT_NO_FATAL_FAILURE(check_moves(self, count, self.ranks / 2));
  }
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
}

TEST_F(VerbsMulticastJob, AJobOfFourHostsMulticastsByTheDevices) {
  VmJob job(4, kByVerbs);
  job.start_each([](int rank, const Line& line) {
    const OwnStderr log;
    unisono_comm_t world = nullptr;
    ASSERT_TRUE(succeeded(unisono_init(&world)));
    ASSERT_NO_FATAL_FAILURE(check_a_few({rank, 4, world, line}));
    EXPECT_TRUE(succeeded(unisono_finalize(world)));
    const std::string text = log.text();
    EXPECT_NE(text.find("multicast by verbs to 239.255."), std::string::npos) << text;
    EXPECT_NE(text.find("rxe" + std::to_string(rank) + " port 1"), std::string::npos) << text;
    EXPECT_EQ(text.find("multicast by verbs: 0 datagrams sent"), std::string::npos) << text;
  });
  job.expect_clean();
}

// Its log says why, and all use IP multicast.
TEST_F(VerbsMulticastJob, WhereOneHostHasNoDeviceAllUseIpMulticast) {
  VmJob job(4, kByVerbs);
  job.use_odd_device("rxe99");
  job.start_each([](int rank, const Line& line) {
    const OwnStderr log;
    unisono_comm_t world = nullptr;
    ASSERT_TRUE(succeeded(unisono_init(&world)));
    ASSERT_NO_FATAL_FAILURE(check_a_few({rank, 4, world, line}));
    EXPECT_TRUE(succeeded(unisono_finalize(world)));
    const std::string text = log.text();
    const char* const expected =
        rank == VmJob::kOddRank ? "multicast goes by IP, not by verbs" : "another carrier is tried";
    EXPECT_NE(text.find(expected), std::string::npos) << text;
  });
  job.expect_clean();
}

// The number before these words of a log; -1: it does not have them.
std::int64_t number_before(const std::string& words, const std::string& log) {
  const std::size_t end = log.find(words);
  if (end == std::string::npos || end == 0) return -1;
  return std::stoll(log.substr(log.rfind(' ', end - 1) + 1));
}

// Packets that netem has dropped on the way to a host.
std::int64_t lost_before(int host) {
  const std::string file = "/run/lost" + std::to_string(host);
  const std::string look = "tc -s qdisc show dev v" + std::to_string(host) +
                           " | awk '/dropped/ {print $7 + 0; exit}' > " + file;
  EXPECT_EQ(std::system(look.c_str()), 0) << look;
  std::int64_t lost = 0;
  std::ifstream(file) >> lost;
  return lost;
}

// The root's multicasts to one rank get lost, and the root computes without calling the library. It
// is reached by its device only, where the rank that lacks the packets sends its requests as urgent
// ones. The root's own thread repeats the packets meanwhile. It also looks at the device from time
// to time, so this does not show what woke it: see ShortOnlySolicitedEventsWakeAnIdleRank.
TEST_F(VerbsMulticastJob, ARootThatComputesRepairsWhatItsDeviceIsAskedFor) {
  constexpr std::int64_t kLost = 3;
  constexpr int kRanks = 4;
  const SharedCounts there(1);
  VmSettings settings = kByVerbs;
  settings.emplace_back("UNISONO_ALGORITHM", "broadcast:flat");
  VmJob job(kRanks, settings);
  job.start_each([&there](int rank, const Line& line) {
    const OwnStderr log;
    unisono_comm_t world = nullptr;
    ASSERT_TRUE(succeeded(unisono_init(&world)));
    const auto broadcast = [&](std::int64_t number) {
      std::int64_t value = rank == 0 ? number : -1;
      ASSERT_TRUE(succeeded(unisono_broadcast(&value, 1, UNISONO_INT64, 0, world)));
      ASSERT_EQ(value, number);
    };
    ASSERT_NO_FATAL_FAILURE(broadcast(7));
    ASSERT_TRUE(succeeded(unisono_barrier(world)));
    line.say("ready");
    line.hear();
    for (std::int64_t i = 1; i <= kLost; ++i) ASSERT_NO_FATAL_FAILURE(broadcast(i));
    line.say("has all");
    if (rank == 0) {
      while (there[0] < kRanks - 1) std::this_thread::yield();
    }
    line.hear();
    EXPECT_TRUE(succeeded(unisono_finalize(world)));
    const std::string text = log.text();
    const std::int64_t requests = number_before(" of them urgent ones to one rank", text);
    EXPECT_GE(requests, rank == 1 ? 1 : 0) << text;
  });
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_EQ(job[rank].line().hear(), "ready");
  run("modprobe -a sch_prio cls_u32");
  run("tc qdisc add dev v1 root netem loss 100%");
  const std::uint64_t sent = rdma_packets_sent(0);
  job[0].line().say("go");
  ASSERT_EQ(job[0].line().hear(), "has all");
  while (lost_before(1) < kLost || rdma_packets_sent(0) < sent + kLost) std::this_thread::yield();
  run("tc qdisc add dev v0 root handle 1: prio");
  run("tc qdisc add dev v0 parent 1:3 netem loss 100%");
  const std::string filter = "tc filter add dev v0 parent 1: protocol ip prio ";
  run(filter + "1 u32 match ip protocol 17 0xff match ip dport 4791 0xffff flowid 1:1");  // RoCE
  run(filter + "2 u32 match ip protocol 17 0xff flowid 1:3");
  run("tc qdisc del dev v1 root");
  for (int rank = 1; rank < kRanks; ++rank) job[rank].line().say("go");
  for (int rank = 1; rank < kRanks; ++rank) {
    EXPECT_EQ(job[rank].line().hear(), "has all") << rank;
    ++there[0];  // the root computes until then
  }
  run("tc qdisc del dev v0 root");
  for (int rank = 0; rank < kRanks; ++rank) job[rank].line().say("leave");
  job.expect_clean();
}

}  // namespace
}  // namespace unisono::harness::verbs_multicast_job_test
