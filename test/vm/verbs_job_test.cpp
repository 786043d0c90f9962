// SPDX-License-Identifier: BSD-3-Clause
// Whole jobs whose long messages go by verbs over soft-RoCE, in the virtual machine of
// `./dev test --vm`: results, lost packets, lost ranks, and devices that fail or vanish. The name
// of a case that begins with Short belongs to the part that `./dev test` runs.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "harness/all_results.hpp"
#include "harness/own_stderr.hpp"
#include "harness/regular_expression.hpp"
#include "harness/unattended.hpp"
#include "vm/vm_hosts.hpp"
#include "vm/vm_test.hpp"

namespace unisono::harness::verbs_job_test {
namespace {

// So that also messages of tests' sizes are long.
const VmSettings kByVerbs = {{"UNISONO_BULK", "verbs"},
                             {"UNISONO_BULK_FROM", "1K"},
                             // Emulated processors are slow; a test of a loss says less.
                             {"UNISONO_DETECT_TIMEOUT_HOSTS", "120s"}};

VmSettings by_verbs_and(const VmSettings& more) {
  VmSettings all = kByVerbs;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

class VerbsJob : public VmTest {};

void leave(const VmRank& self) { EXPECT_TRUE(succeeded(unisono_finalize(self.world))); }

testing::AssertionResult long_allgather_is_right(const VmRank& self, std::int64_t count) {
  const auto input = own_values(self, count);
  std::vector<std::int64_t> all(input.size() * static_cast<std::size_t>(self.ranks), -1);
  const auto called =
      succeeded(unisono_allgather(input.data(), all.data(), count, UNISONO_INT64, self.world));
  if (!called) return called;
  for (std::size_t at = 0; at < all.size(); ++at) {
    const auto expected = static_cast<std::int64_t>(at % input.size() * 3 + at / input.size());
    if (all[at] != expected) {
      return testing::AssertionFailure() << "element " << at << " is " << all[at];
    }
  }
  return testing::AssertionSuccess();
}

// A part of check_everything(): emulated processors are slow.
void check_all_kinds(const VmRank& self, const std::vector<std::int64_t>& counts) {
  for (const std::int64_t count : counts) {
    SCOPED_TRACE(count);
    ASSERT_NO_FATAL_FAILURE(check_reductions(self, count, self.ranks - 1));
    ASSERT_NO_FATAL_FAILURE(check_moves(self, count, self.ranks / 2));
    ASSERT_NO_FATAL_FAILURE(check_equal_blocks(self, count, 0, false, Way::blocking));
    ASSERT_NO_FATAL_FAILURE(
        check_unequal_blocks(self, unequal_counts(self.ranks, count), true, Way::blocking));
  }
  ASSERT_NO_FATAL_FAILURE(check_started_and_planned(self));
  ASSERT_NO_FATAL_FAILURE(check_parts(self));
}

TEST_F(VerbsJob, ShortCollectivesOfFourHostsAreRightAndGoByTheDevices) {
  std::vector<std::uint64_t> before;
  for (int host = 0; host < 4; ++host) before.push_back(rdma_packets_sent(host));
  VmJob job(4, kByVerbs);
  job.start([](const VmRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_all_kinds(self, {1, 1000, 20'003}));
    leave(self);
  });
  job.expect_clean();
  for (int host = 0; host < 4; ++host) {
    EXPECT_GT(rdma_packets_sent(host), before[static_cast<std::size_t>(host)] + 1000) << host;
  }
}

class VerbsJobOf : public VerbsJob, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, VerbsJobOf, testing::Values(2, 3, 5, 8),
                         [](const auto& each) { return std::to_string(each.param); });

TEST_P(VerbsJobOf, EveryCollectiveIsRight) {
  VmJob job(GetParam(), kByVerbs);
  job.start([](const VmRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_all_kinds(self, {0, 1, 127, 128, 129, 8192, 65'537, 200'003}));
    ASSERT_NO_FATAL_FAILURE(check_blocks(self));
    leave(self);
  });
  job.expect_clean();
}

TEST_F(VerbsJob, OperationsEndThoughNoRankCalls) {
  VmJob job(4, kByVerbs);
  job.start([](const VmRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_unattended(self));
    leave(self);
  });
  job.expect_clean();
}

// Ranks are late in turn, so that the others sleep, or run ahead into the next operation.
void check_a_row(const VmRank& self, int operations, std::int64_t count) {
  base::Prng prng(static_cast<std::uint64_t>(self.rank) + 1);
  for (int i = 0; i < operations; ++i) {
    if (prng.below(64) == 0) usleep(static_cast<useconds_t>(prng.below(3000)));
    std::vector<std::int64_t> values(static_cast<std::size_t>(count), self.rank + i);
    std::vector<std::int64_t> result(values.size(), -1);
    switch (i % 3) {
      case 0:
        ASSERT_TRUE(long_allgather_is_right(self, count));
        break;
      case 1:
        ASSERT_TRUE(succeeded(unisono_allreduce(values.data(), result.data(), count, UNISONO_INT64,
                                                UNISONO_MAX, self.world)));
        ASSERT_EQ(result.front(), self.ranks - 1 + i);
        ASSERT_EQ(result.back(), self.ranks - 1 + i);
        break;
      default:
        ASSERT_TRUE(succeeded(
            unisono_broadcast(values.data(), count, UNISONO_INT64, i % self.ranks, self.world)));
        ASSERT_EQ(values.front(), i % self.ranks + i);
        ASSERT_EQ(values.back(), i % self.ranks + i);
    }
  }
}

TEST_F(VerbsJob, ManyOperationsInARowWithLateRanks) {
  VmJob job(4, kByVerbs);
  job.start([](const VmRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_a_row(self, 10'000, 160));
    ASSERT_NO_FATAL_FAILURE(check_a_row(self, 60, 50'000));
    leave(self);
  });
  job.expect_clean();
}

// Long enough for counters of packets and buffers to come round, which takes minutes here.
TEST_F(VerbsJob, TenTimesAsManyOperationsInARow) {
  VmJob job(4, kByVerbs);
  job.start([](const VmRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_a_row(self, 100'000, 160));
    leave(self);
  });
  job.expect_clean();
}

// Each host loses some of the packets that are sent to it, RDMA and datagrams.
TEST_F(VerbsJob, LostPacketsAreRepeated) {
  for (int host = 0; host < 4; ++host) {
    run("tc qdisc add dev v" + std::to_string(host) + " root netem loss 2%");
  }
  VmJob job(4, kByVerbs);
  job.start([](const VmRank& self) {
    ASSERT_NO_FATAL_FAILURE(check_all_kinds(self, {1, 1000, 20'003}));
    leave(self);
  });
  job.expect_clean();
  for (int host = 0; host < 4; ++host) {
    const std::string interface = "v" + std::to_string(host);
    const std::string said = output_of("tc -s qdisc show dev " + interface);
    EXPECT_NE(said.find("dropped"), std::string::npos) << said;
    EXPECT_EQ(said.find("dropped 0"), std::string::npos) << said;
    run("tc qdisc del dev " + interface + " root");
  }
}

// ---- losses ------------------------------------------------------------------------------------

// Makes calls with long messages until one fails, and returns its error.
std::string error_of_a_row(const VmRank& self) {
  int error = UNISONO_OK;
  std::string message;
  while (error == UNISONO_OK) {
    const auto input = own_values(self, 30'000);
    std::vector<std::int64_t> all(input.size() * static_cast<std::size_t>(self.ranks));
    error = unisono_allgather(input.data(), all.data(), 30'000, UNISONO_INT64, self.world);
    message = unisono_last_error();
  }
  EXPECT_EQ(error, UNISONO_ERROR_RANK_LOST) << message;
  return message;
}

enum class Fate { stays, ends };  // of the process of rank 2

// A message that does not pass shows at the write, or at the acknowledgement of an earlier one.
std::string failed_to(const std::string& rank) {
  return " port 1: (a write|an acknowledgement) to rank " + rank + " failed";
}

// When all ranks are amid long messages, `happen` is called. Each of the others names rank 2, and
// the `reason`, a regular expression, reaches one. If its device fails, it is the lost one itself.
void expect_loss_of_rank_2(const VmSettings& settings, Fate fate,
                           const std::function<void(VmJob&)>& happen, const std::string& reason,
                           const std::string& odd_device = "") {
  constexpr int kVictim = VmJob::kOddRank;
  VmJob job(4, settings);
  job.use_odd_device(odd_device);
  const std::string named = odd_device.empty() ? "rank 2" : "rank 2 is lost";
  job.start([&](const VmRank& self) {
    const OwnStderr log;
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(long_allgather_is_right(self, 30'000));
    self.line.say("amid");
    const std::string message = error_of_a_row(self);
    if (self.rank != kVictim) {
      EXPECT_NE(message.find(named), std::string::npos) << message;
    }
    leave(self);
    const std::string all = message + "\n" + log.text();
    self.line.say(!RegularExpression(reason).search(all).empty() ? "knows why" : "was told");
    std::fprintf(stdout, "rank %d: %s\n", self.rank, all.c_str());
  });
  for (int rank = 0; rank < 4; ++rank) ASSERT_EQ(job[rank].line().hear(), "amid");
  happen(job);
  int know_why = 0;
  for (const int rank : {0, 1, 3}) {
    know_why += job[rank].line().hear() == "knows why" ? 1 : 0;
  }
  if (fate == Fate::stays) {
    know_why += job[kVictim].line().hear() == "knows why" ? 1 : 0;
  } else {
    kill(job[kVictim].pid(), SIGKILL);
  }
  EXPECT_GT(know_why, 0) << reason;
  job.expect_clean(fate == Fate::stays ? -1 : kVictim);
}

TEST_F(VerbsJob, AKilledRankIsNamed) {
  expect_loss_of_rank_2(
      kByVerbs, Fate::ends, [](VmJob& job) { kill(job[2].pid(), SIGKILL); }, "rank 2");
}

TEST_F(VerbsJob, ARankThatHangsIsNamed) {
  expect_loss_of_rank_2(
      by_verbs_and({{"UNISONO_DETECT_TIMEOUT_HOSTS", "5s"}}), Fate::ends,
      [](VmJob& job) { kill(job[2].pid(), SIGSTOP); }, "rank 2");
}

// Datagrams pass. Acknowledgements to rank 2 are dropped as well, so its own writes fail, too:
// which side reports first is open, and either names both.
TEST_F(VerbsJob, APathThatCarriesNoRdmaIsALossThatNamesDeviceAndPort) {
  run("modprobe -a sch_prio cls_u32 act_gact");
  expect_loss_of_rank_2(
      by_verbs_and({{"UNISONO_DETECT_TIMEOUT_HOSTS", "20s"}}), Fate::stays,
      [](VmJob&) {
        run("tc qdisc add dev v2 root handle 1: prio && tc filter add dev v2 parent 1: protocol ip "
            "u32 match ip protocol 17 0xff match ip dport 4791 0xffff action drop");
      },
      failed_to("2") + "|rank 2 at rxe2" + failed_to("[013]"));
  run("tc qdisc del dev v2 root");
}

// The spare device carries rank 2's long messages; datagrams pass by its host's interface. The
// kernel keeps a soft-RoCE device until no process has it open, and its interface, too.
TEST_F(VerbsJob, ADeviceThatIsRemovedIsNamedWithItsRank) {
  const std::string spare = std::to_string(vm_hosts());
  const std::string device = vm_device(vm_hosts());
  expect_loss_of_rank_2(
      by_verbs_and({{"UNISONO_DETECT_TIMEOUT_HOSTS", "20s"}}), Fate::stays,
      [&spare](VmJob&) { run("setsid ip link del v" + spare + " >/dev/null 2>&1 &"); },
      failed_to("2") + "|rank 2 at " + device + " port 1: the port is no longer active|rank 2 at " +
          device + failed_to("[013]") + " here",
      device);
  const std::string folder = "/sys/class/infiniband/" + device;
  while (access(folder.c_str(), F_OK) == 0) usleep(10'000);
}

// ---- what the start says -----------------------------------------------------------------------

// Ranks whose start fails wait for acknowledgements of those that have ended.
TEST_F(VerbsJob, ShortARankWithoutADeviceIsNamedByAllRanks) {
  VmJob job(4, by_verbs_and({{"UNISONO_DETECT_TIMEOUT_HOSTS", "5s"}}));
  job.start_each([](int rank, const Line&) {
    if (rank == 3) setenv("UNISONO_VERBS_DEVICE", "rxe99", 1);
    unisono_comm_t world = nullptr;
    EXPECT_TRUE(failed(unisono_init(&world), UNISONO_ERROR_UNSUPPORTED,
                       {"UNISONO_BULK is verbs", "rank 3"}));
  });
  job.expect_clean();
}

}  // namespace
}  // namespace unisono::harness::verbs_job_test
