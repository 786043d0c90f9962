// SPDX-License-Identifier: BSD-3-Clause
// Jobs of several test hosts for a GoogleTest: each rank is a process on a host with a network, a
// hostname and a memory of its own. Needs root; a fixture derived from HostsTest says so.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/hosts.hpp"
#include "harness/outcome.hpp"
#include "harness/scale.hpp"
#include "unisono/unisono.h"

namespace unisono::harness {

// Under a sanitizer on a busy machine, ranks that live are silent for a second.
inline constexpr const char* kDetectTimeout = kSanitized ? "4s" : "1s";

inline constexpr int kHosts = 3;
inline constexpr int kRanks = 5;

struct HostRank {
  int rank;
  int ranks;
  unisono_comm_t world;
  const Line& line;
};
using RankBody = std::function<void(const HostRank&)>;
using Environment = std::vector<std::pair<std::string, std::string>>;

// Hosts 0 and 1 have two ranks each, which are not neighbours; host 2 has one.
inline int host_of(int rank) { return rank % kHosts; }
// The form in which an error of the others names it.
inline std::string place_of(int rank) {
  return "host 10.77.0." + std::to_string(host_of(rank) + 1);
}

inline void set_environment(int rank) {
  setenv("UNISONO_RANK", std::to_string(rank).c_str(), 1);
  setenv("UNISONO_SIZE", std::to_string(kRanks).c_str(), 1);
  setenv("UNISONO_RENDEZVOUS", "tcp:10.77.0.1:7000", 1);
  setenv("UNISONO_JOB_KEY", "the key of this test job", 1);
  // Sanitizers and a busy machine make ranks slow to come.
  setenv("UNISONO_START_TIMEOUT", "60s", 1);
  // A test of a loss waits for it. Others have to be right whether or not a rank is suspected.
  setenv("UNISONO_DETECT_TIMEOUT_HOSTS", kDetectTimeout, 1);
}

// All ranks of a job; the body contains the expectations.
inline std::vector<HostProcess> start_job(const TestHosts& hosts, const RankBody& body,
                                          const Environment& environment = {}) {
  std::vector<HostProcess> processes;
  for (int rank = 0; rank < kRanks; ++rank) {
    processes.push_back(hosts.start(host_of(rank), [rank, &body, &environment](const Line& line) {
      set_environment(rank);
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      unisono_comm_t world = nullptr;
      ASSERT_TRUE(succeeded(unisono_init(&world)));
      body({rank, kRanks, world, line});
    }));
  }
  return processes;
}

inline void expect_all_clean(std::vector<HostProcess>& processes) {
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    EXPECT_EQ(processes[rank].wait(), 0) << "rank " << rank;
  }
}

inline bool is_one_of(const std::vector<int>& ranks, int rank) {
  return std::ranges::find(ranks, rank) != ranks.end();
}

// Loses them when the others have completed their calls so far, and have said so. Else its last
// messages would be lost with a rank, and these calls would fail.
inline void lose_when_others_are_ready(const std::vector<HostProcess>& processes,
                                       const std::vector<int>& lost) {
  for (int rank = 0; rank < kRanks; ++rank) {
    if (is_one_of(lost, rank)) continue;
    EXPECT_EQ(processes[static_cast<std::size_t>(rank)].line().hear(), "ready");
  }
  for (const int rank : lost) processes[static_cast<std::size_t>(rank)].line().say("be lost");
}

inline void leave(const HostRank& self) { EXPECT_TRUE(succeeded(unisono_finalize(self.world))); }

class HostsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!hosts_.reason_to_skip().empty()) GTEST_SKIP() << hosts_.reason_to_skip();
  }

  TestHosts hosts_ = TestHosts::up(kHosts);
};

}  // namespace unisono::harness
