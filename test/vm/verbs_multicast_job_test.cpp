// SPDX-License-Identifier: BSD-3-Clause
// Whole jobs whose multicasts go by verbs over soft-RoCE, in the virtual machine of
// `./dev test --vm`.
#include <gtest/gtest.h>

#include <string>

#include "harness/all_results.hpp"
#include "harness/own_stderr.hpp"
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

}  // namespace
}  // namespace unisono::harness::verbs_multicast_job_test
