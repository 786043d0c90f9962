// SPDX-License-Identifier: BSD-3-Clause
// The switch between the hosts of a job stops carrying multicast to some hosts, or to all, as a
// switch with IGMP snooping and no querier does after some minutes. The job continues with right
// results, and logs once what has happened and what to do (multicast_vote). A receiver that is
// killed amid multicasts is an error on all other ranks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "hosts/batch.hpp"
#include "net/host_ranks.hpp"

namespace unisono::harness::multicast_test {
namespace {

// The standard error of all ranks of a job together.
class JobLog {
 public:
  JobLog() : file_(memfd_create("job-log", MFD_CLOEXEC)) {
    EXPECT_TRUE(file_.valid());
    EXPECT_EQ(fcntl(file_.get(), F_SETFL, O_APPEND), 0);
  }

  // In a rank's process.
  void take_standard_error() const { ASSERT_EQ(dup2(file_.get(), STDERR_FILENO), STDERR_FILENO); }

  std::string text() const {
    std::string all(static_cast<std::size_t>(lseek(file_.get(), 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(file_.get(), all.data(), all.size(), 0), std::ssize(all));
    return all;
  }
  // Lines with these words.
  int count(std::string_view words) const {
    const std::string all = text();
    int found = 0;
    for (auto at = all.find(words); at != std::string::npos; at = all.find(words, at + 1)) ++found;
    return found;
  }

 private:
  base::Descriptor file_;
};

// A message to all hosts of several packets, from each host in turn, and a sum.
void check_some(const HostRank& self, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const int root = i % kHosts;
    std::vector<std::int64_t> values(1 + static_cast<std::size_t>(i) * 131 % 3000);
    if (self.rank == root) values.assign(values.size(), 1000 + i);
    ASSERT_TRUE(succeeded(unisono_broadcast(values.data(), static_cast<std::int64_t>(values.size()),
                                            UNISONO_INT64, root, self.world)));
    ASSERT_EQ(values, std::vector<std::int64_t>(values.size(), 1000 + i)) << "round " << i;
    const std::int64_t one = self.rank + i;
    std::int64_t sum = -1;
    ASSERT_TRUE(
        succeeded(unisono_allreduce(&one, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world)));
    ASSERT_EQ(sum, self.ranks * (self.ranks - 1) / 2 + self.ranks * i) << "round " << i;
  }
}

class HostsMulticast : public HostsTest {
 protected:
  static constexpr const char* kNote = "has ceased to carry multicast";

  // The switch sends no multicast to that host any more.
  void stop_multicast_to(int host) {
    const std::string port = hosts_.record().hosts[static_cast<std::size_t>(host)].name;
    const base::Status done = tools::run_batch(
        "bridge", "link set dev " + port + " mcast_flood off\n", hosts_.record().keeper);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }

  void run_job(const std::vector<int>& unreached) {
    const JobLog log;
    setenv("UNISONO_MULTICAST", "on", 1);
    std::vector<HostProcess> processes = start_job(hosts_, [&log](const HostRank& self) {
      log.take_standard_error();
      check_some(self, 20);
      self.line.say("multicast works");
      ASSERT_EQ(self.line.hear(), "go on");
      // Each time, many times as many packets as a window has. A host believes that multicast has
      // ceased when it has missed it for some time, so a fast job has to go on for longer.
      std::int32_t has_noted = 0;
      for (int i = 0; i < 100 && has_noted == 0; ++i) {
        check_some(self, 600);
        has_noted = log.count(kNote);
        ASSERT_TRUE(succeeded(unisono_broadcast(&has_noted, 1, UNISONO_INT32, 0, self.world)));
      }
      check_some(self, 600);
      leave(self);
    });
    unsetenv("UNISONO_MULTICAST");
    for (const HostProcess& each : processes) ASSERT_EQ(each.line().hear(), "multicast works");
    EXPECT_EQ(log.count("multicast"), 0) << log.text();
    for (const int host : unreached) stop_multicast_to(host);
    for (const HostProcess& each : processes) each.line().say("go on");
    expect_all_clean(processes);
    EXPECT_EQ(log.count(kNote), 1) << log.text();
    EXPECT_EQ(log.count("IGMP querier"), 1) << log.text();
    EXPECT_EQ(log.count("UNISONO_MULTICAST=off"), 1) << log.text();
  }
};

TEST_F(HostsMulticast, AJobGoesOnWhenOneHostHearsNoMulticastAnyMore) { run_job({2}); }

// One lost packet of the probe is no reason to refuse a job that insists on multicast.
TEST_F(HostsMulticast, AJobThatInsistsOnItStartsOnABadNetwork) {
  for (int turn = 0; turn < 8; ++turn) {
    SCOPED_TRACE(turn);
    auto processes = start_job(hosts_, [](const HostRank& self) { leave(self); },
                               {{"UNISONO_MULTICAST", "on"},
                                {"UNISONO_FAULT", "loss=60%"},
                                {"UNISONO_DETECT_TIMEOUT_HOSTS", "1h"}});
    expect_all_clean(processes);
  }
}

// Rank 0 multicasts and waits for nobody, while a host's receiver is killed. Rank 4 sees the end of
// rank 1, and nobody that of rank 2.
void expect_loss_amid_broadcasts(const TestHosts& hosts, int victim) {
  const auto body = [victim](const HostRank& self) {
    std::int64_t value = 0;
    const auto broadcast = [&](std::int64_t next) {
      value = self.rank == 0 ? next : -1;
      return unisono_broadcast(&value, 1, UNISONO_INT64, 0, self.world);
    };
    for (int i = 0; i < 300; ++i) {
      ASSERT_TRUE(succeeded(broadcast(i)));
      ASSERT_EQ(value, i);
    }
    // A rank that is late would see the death before it has the last of these.
    self.line.say("they are here");
    ASSERT_EQ(self.line.hear(), "go on");
    if (self.rank == victim) raise(SIGKILL);
    int error = UNISONO_OK;
    while ((error = broadcast(7)) == UNISONO_OK) ASSERT_EQ(value, 7);
    EXPECT_TRUE(failed(error, UNISONO_ERROR_RANK_LOST,
                       {"rank " + std::to_string(victim) + " is lost (" + place_of(victim)}));
    leave(self);
  };
  std::vector<HostProcess> processes =
      start_job(hosts, body,
                {{"UNISONO_MULTICAST", "on"}, {"UNISONO_ALGORITHM", "broadcast: two-level(flat)"}});
  for (const HostProcess& each : processes) ASSERT_EQ(each.line().hear(), "they are here");
  for (const HostProcess& each : processes) each.line().say("go on");
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ(processes[static_cast<std::size_t>(rank)].wait(), 0) << "rank " << rank;
  }
}

TEST_F(HostsMulticast, AReceiverThatIsKilledIsAnErrorOnAllHosts) {
  expect_loss_amid_broadcasts(hosts_, 1);
}

TEST_F(HostsMulticast, AHostThatIsGoneIsAnErrorOnAllOthers) {
  expect_loss_amid_broadcasts(hosts_, 2);
}

TEST_F(HostsMulticast, AJobGoesOnWhenNoHostHearsMulticastAnyMore) { run_job({0, 1, 2}); }

}  // namespace
}  // namespace unisono::harness::multicast_test
