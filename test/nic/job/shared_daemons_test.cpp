// SPDX-License-Identifier: BSD-3-Clause
// Daemons that serve more than one job, or less than one asks for: jobs with keys of their own take
// nothing of each other's packets, and a communicator that one daemon has no room for does without
// the NIC path on all hosts.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "nic/job/nic_job.hpp"

namespace unisono::harness::shared_daemons_test {
namespace {

constexpr int kCalls = 300;
constexpr std::int64_t kMost = 175;  // numbers that fit one packet

// The result tells the job and the call.
void sum_up(const NicRank& self, unisono_comm_t comm, int job, int call) {
  const std::int64_t count = 1 + call % kMost;
  const std::int64_t salt = 1'000'000 * job + 1000 * call;
  std::vector<std::int64_t> values(static_cast<std::size_t>(count), salt + self.rank);
  ASSERT_TRUE(succeeded(
      unisono_allreduce(UNISONO_IN_PLACE, values.data(), count, UNISONO_INT64, UNISONO_SUM, comm)));
  const std::int64_t sum = self.ranks * salt + self.ranks * (self.ranks - 1) / 2;
  ASSERT_EQ(values, std::vector<std::int64_t>(values.size(), sum)) << "call " << call;
}

// Tells the test where it is, and waits for it.
void pause_at(const NicRank& self, const std::string& where) {
  self.line.say(where);
  self.line.hear();
}
void expect_all_at(const std::string& where, const std::vector<HostProcess>& processes) {
  for (const auto& process : processes) EXPECT_EQ(process.line().hear(), where);
}
void release(const std::vector<HostProcess>& processes) {
  for (const auto& process : processes) process.line().say("go");
}

class NicSharedDaemons : public NicJob {
 protected:
  using Counters = decltype(nic::ServiceStatus::counters);

  void SetUp() override {
    NicJob::SetUp();
    environment_ = {{"UNISONO_NIC_SPLITS", "0"}};  // one tree: an operation is one result
  }

  // Ranks on these hosts; they meet at the first one's.
  std::vector<HostProcess> start_job_on(const std::vector<int>& hosts, int job) {
    host_of_ = hosts;
    const std::string number = std::to_string(job);
    return start_job(
        [job](const NicRank& self) {
          pause_at(self, "ready");
          for (int call = 0; call < kCalls; ++call) {
            ASSERT_NO_FATAL_FAILURE(sum_up(self, self.world, job, call));
          }
          pause_at(self, "done");
          leave(self);
        },
        {{"UNISONO_JOB_KEY", "the key of job " + number},
         {"UNISONO_RENDEZVOUS",
          "tcp:10.77.0." + std::to_string(hosts.front() + 1) + ":700" + number}});
  }

  std::vector<Counters> all_counters() const {
    std::vector<Counters> all;
    for (int host = 0; host < kHosts; ++host) all.push_back(status(host).counters);
    return all;
  }

  void expect_two_jobs_apart(const std::vector<int>& first, const std::vector<int>& second);
  // The log of a job on all hosts. Host 2 allows it `groups` groups, of which `in_use` are in use.
  std::string log_with_quota(int groups, std::uint32_t in_use, const Body& body);
};

void NicSharedDaemons::expect_two_jobs_apart(const std::vector<int>& first,
                                             const std::vector<int>& second) {
  auto one = start_job_on(first, 1);
  auto two = start_job_on(second, 2);
  for (const auto* job : {&one, &two}) expect_all_at("ready", *job);
  const auto before = all_counters();
  for (const auto* job : {&one, &two}) release(*job);
  for (const auto* job : {&one, &two}) expect_all_at("done", *job);
  auto counted = all_counters();
  for (int host = 0; host < kHosts; ++host) {
    SCOPED_TRACE("host " + std::to_string(host));
    const auto at = static_cast<std::size_t>(host);
    for (std::size_t i = 0; i < counted[at].size(); ++i) counted[at][i] -= before[at][i];
    std::set<std::uint32_t> jobs;
    for (const nic::GroupLine& line : status(host).own_groups) jobs.insert(line.job);
    const auto there = static_cast<std::uint64_t>(std::ranges::count(first, host) +
                                                  std::ranges::count(second, host));
    const auto roots =
        static_cast<std::uint64_t>((first.front() == host) + (second.front() == host));
    EXPECT_EQ(jobs.size(), there);
    // Each result once, of the jobs that are here, and of no other.
    EXPECT_EQ(counted[at][UNISONO_NIC_SENT_DOWN], kCalls * roots);
    EXPECT_EQ(counted[at][UNISONO_NIC_CAME_DOWN], kCalls * (there - roots));
    EXPECT_EQ(counted[at][UNISONO_NIC_SENT_UP], kCalls * (there - roots));
    // Multicasts also reach hosts without the job.
    EXPECT_EQ(counted[at][UNISONO_NIC_OTHERS_FRAME] > 0, there < 2);
    for (const auto reason : {UNISONO_NIC_SHORT, UNISONO_NIC_BAD_TAG, UNISONO_NIC_BAD_SENDER,
                              UNISONO_NIC_MISMATCH, UNISONO_NIC_NO_ROOM}) {
      EXPECT_EQ(counted[at][reason], 0U) << nic::counter_name(reason);
    }
  }
  for (const auto* job : {&one, &two}) release(*job);
  expect_all_clean(one);
  expect_all_clean(two);
}

TEST_F(NicSharedDaemons, JobsTakeNothingOfEachOther) {
  start_daemons();
  expect_two_jobs_apart({0, 1, 2}, {1, 2, 3});
  expect_two_jobs_apart({0, 1, 2, 3}, {3, 2, 1, 0});
  for (int host = 0; host < kHosts; ++host) EXPECT_EQ(status(host).groups, 0U) << host;
}

std::string NicSharedDaemons::log_with_quota(int groups, std::uint32_t in_use, const Body& body) {
  start_daemons_with(2, {"--groups-per-user", std::to_string(groups)});
  testing::internal::CaptureStderr();
  auto processes = start_job(
      [&body](const NicRank& self) {
        body(self);
        pause_at(self, "done");
        leave(self);
      },
      {{"UNISONO_LOG", "info"}});
  expect_all_at("done", processes);
  for (int host = 0; host < kHosts; ++host) {
    EXPECT_EQ(status(host).groups, in_use) << host;
  }
  release(processes);
  expect_all_clean(processes);
  return testing::internal::GetCapturedStderr();
}

// A communicator's: its tree, allgathers, and multicasts of roots.
constexpr int kGroupsOfOne = 3;

TEST_F(NicSharedDaemons, AWorldBeyondTheQuotaDoesWithout) {
  const std::string log = log_with_quota(kGroupsOfOne - 1, 0, [](const NicRank& self) {
    for (int call = 0; call < kCalls; ++call) {
      ASSERT_NO_FATAL_FAILURE(sum_up(self, self.world, 1, call));
    }
  });
  EXPECT_EQ(operations(), 0U);
  EXPECT_NE(log.find(":2 [nic] the NIC path is not used by"), std::string::npos) << log;
  EXPECT_NE(log.find("a communicator of 4 ranks: unisonod: user 0 has 2 groups in the NIC path, "
                     "which is all that one user may have; free communicators, or start unisonod "
                     "with a larger --groups-per-user"),
            std::string::npos)
      << log;
  EXPECT_NE(log.find("the NIC path is not used: rank 2"), std::string::npos) << log;
  EXPECT_NE(log.find("cannot; it says why"), std::string::npos) << log;
}

// The first of the twin's groups has room, and is given back.
TEST_F(NicSharedDaemons, ACommunicatorBeyondTheQuotaDoesWithout) {
  const std::string log = log_with_quota(kGroupsOfOne + 1, kGroupsOfOne, [](const NicRank& self) {
    unisono_comm_t twin = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &twin)));
    for (int call = 0; call < kCalls; ++call) {
      ASSERT_NO_FATAL_FAILURE(sum_up(self, twin, 1, call));
      ASSERT_NO_FATAL_FAILURE(sum_up(self, self.world, 2, call));
    }
    ASSERT_TRUE(succeeded(unisono_comm_free(twin)));
  });
  EXPECT_EQ(operations(), kCalls + 1U) << "the world's, and its trial's";
  EXPECT_NE(log.find("the NIC path is not used by a communicator of 4 ranks: unisonod: user 0 has "
                     "4 groups in the NIC path"),
            std::string::npos)
      << log;
  EXPECT_NE(log.find("--groups-per-user"), std::string::npos) << log;
}

// The world keeps its groups until it ends, and then the daemon does.
TEST_F(NicSharedDaemons, ACommunicatorOfADaemonThatDrainsDoesWithout) {
  start_daemons_with(2, {"--drain", "86400"});
  testing::internal::CaptureStderr();
  auto processes = start_job(
      [](const NicRank& self) {
        pause_at(self, "ready");
        unisono_comm_t twin = nullptr;
        ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &twin)));
        for (int call = 0; call < kCalls; ++call) {
          ASSERT_NO_FATAL_FAILURE(sum_up(self, twin, 1, call));
          ASSERT_NO_FATAL_FAILURE(sum_up(self, self.world, 2, call));
        }
        ASSERT_TRUE(succeeded(unisono_comm_free(twin)));
        pause_at(self, "done");
        leave(self);
      },
      {{"UNISONO_LOG", "info"}});
  expect_all_at("ready", processes);
  kill(daemon_on(2), SIGTERM);
  while ((*nic::ServiceClient::connect(path(2)))->describe().ok()) std::this_thread::yield();
  release(processes);
  expect_all_at("done", processes);
  EXPECT_EQ(operations(), kCalls + 1U) << "the world's, and its trial's";
  release(processes);
  expect_all_clean(processes);
  while (nic::ServiceClient::connect(path(2)).ok()) std::this_thread::yield();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("the NIC path is not used by a communicator of 4 ranks: unisonod: it is about "
                     "to stop, and takes no new groups (--drain)"),
            std::string::npos)
      << log;
}

}  // namespace
}  // namespace unisono::harness::shared_daemons_test
