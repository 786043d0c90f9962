// SPDX-License-Identifier: BSD-3-Clause
// What a collective costs a host's processor while it waits: how often it wakes up, and how many
// datagrams it handles. In the NIC path neither grows with the number of hosts or the length of
// the vectors, because programs take the packets. Among host processes both grow with the hosts.
//
// Ranks come one after another: each when rank 0 sleeps, which comes first. So whatever wakes rank
// 0 shows. The least of several calls counts, as other work of the machine only adds to it.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "nic/job/nic_job.hpp"

namespace unisono::harness::wake_ups_test {
namespace {

constexpr int kFew = 3, kMany = 8;
// A rank that has waited for 10 ms looks for losses, and asks the hosts whose contributions it
// lacks. A busy machine needs many calls for a few that are over before.
constexpr int kLeastCalls = 3, kMostCalls = 40;
// By so many wake-ups and datagrams calls may differ where they do not grow. With so many more
// hosts, a rank that wakes for each of them wakes more often by kMany - kFew.
constexpr std::int64_t kSlack = 2;
// In the NIC path a rank is woken by the result.
constexpr std::int64_t kMostWakeUps = 1 + kSlack;
// A rank that has not run for so long has ended its short sleeps between polls.
constexpr std::int64_t kStillNs = 2 * base::kMillisecond;

struct Kind {
  std::string name;
  std::int64_t integers = 0;  // of a vector or block
  int packets = 1;            // that it fills in the NIC path
};
const std::vector<Kind> kShort = {{"barrier"}, {"allreduce", 1}, {"allgather", 1}};
const std::vector<Kind> kLong = {{"allreduce", 700, 4}, {"allgather", 350, 2}};

// So far, of the calling thread and its host.
struct Usage {
  std::int64_t wake_ups = 0;  // voluntary context switches
  std::int64_t received = 0;  // datagrams that processes have read and sent
  std::int64_t sent = 0;
};

std::int64_t value_at(const std::string& line, std::size_t column) {
  std::istringstream words(line);
  std::string word;
  for (std::size_t i = 0; i <= column; ++i) words >> word;
  return std::stoll(word);
}

// The lines "Udp: InDatagrams NoPorts InErrors OutDatagrams ..." and "Udp: <their values>".
void count_datagrams(Usage& usage) {
  std::ifstream file("/proc/self/net/snmp");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("Udp: ", 0) != 0 || line.find("InDatagrams") != std::string::npos) continue;
    usage.received = value_at(line, 1);
    usage.sent = value_at(line, 4);
  }
}

Usage usage_now() {
  Usage usage;
  count_datagrams(usage);
  rusage used = {};
  getrusage(RUSAGE_THREAD, &used);
  usage.wake_ups = used.ru_nvcsw;
  return usage;
}

int make_call(const Kind& kind, const NicRank& self) {
  if (kind.name == "barrier") return unisono_barrier(self.world);
  const auto count = static_cast<std::size_t>(kind.integers);
  const std::vector<std::int64_t> own(count, self.rank + 1);
  if (kind.name == "allreduce") {
    std::vector<std::int64_t> sum(count);
    const int error = unisono_allreduce(own.data(), sum.data(), kind.integers, UNISONO_INT64,
                                        UNISONO_SUM, self.world);
    EXPECT_EQ(sum, std::vector<std::int64_t>(count, self.ranks * (self.ranks + 1) / 2));
    return error;
  }
  std::vector<std::int64_t> all(count * static_cast<std::size_t>(self.ranks));
  const int error =
      unisono_allgather(own.data(), all.data(), kind.integers, UNISONO_INT64, self.world);
  EXPECT_EQ(all.front(), 1);
  EXPECT_EQ(all.back(), self.ranks);
  return error;
}

// Tells the test how often it has slept before each call, and what the call has cost after it.
void rank_body(const NicRank& self, const std::vector<Kind>& kinds) {
  for (const Kind& kind : kinds) {
    while (self.line.hear() == "go") {
      const Usage before = usage_now();
      self.line.say(std::to_string(before.wake_ups));
      ASSERT_TRUE(succeeded(make_call(kind, self)));
      const Usage after = usage_now();
      std::ostringstream cost;
      cost << after.wake_ups - before.wake_ups << ' ' << after.received - before.received << ' '
           << after.sent - before.sent;
      self.line.say(cost.str());
    }
  }
  leave(self);
}

// The state of a process's main thread, and how often it has slept.
class Sleeper {
 public:
  explicit Sleeper(pid_t pid) : path_("/proc/" + std::to_string(pid) + "/status") {}

  void look() {
    const std::int64_t before = wake_ups_;
    const bool sleeps = read();
    seen_ns_ = base::now_ns();
    if (!sleeps || wake_ups_ != before) still_since_ns_ = seen_ns_;
  }
  std::int64_t wake_ups() const { return wake_ups_; }
  bool is_still() const { return seen_ns_ - still_since_ns_ >= kStillNs; }
  bool has_ended() const { return has_ended_; }

 private:
  // Whether it sleeps.
  bool read() {
    std::ifstream file(path_);
    std::string line;
    bool sleeps = false;
    has_ended_ = !file;
    while (std::getline(file, line)) {
      if (line.rfind("State:", 0) == 0) {
        sleeps = line.find('S', 6) != std::string::npos;
        has_ended_ |= line.find('Z', 6) != std::string::npos;
      }
      if (line.rfind("voluntary_ctxt_switches:", 0) == 0) wake_ups_ = value_at(line, 1);
    }
    return sleeps;
  }
  std::string path_;
  bool has_ended_ = false;
  std::int64_t wake_ups_ = -1;
  std::int64_t seen_ns_ = 0;
  std::int64_t still_since_ns_ = 0;
};

// A call's cost for a waiting rank: the most of any rank, in its least call.
struct Cost {
  std::int64_t wake_ups = std::numeric_limits<std::int64_t>::max();
  std::int64_t received = wake_ups;
  std::int64_t sent = wake_ups;
};

class NicWakeUps : public NicJob {
 protected:
  // Ranks that wait for long ask each other whether they live: not within a test.
  void SetUp() override {
    NicJob::SetUp();
    environment_ = {{"UNISONO_DETECT_TIMEOUT", "300s"}, {"UNISONO_DETECT_TIMEOUT_HOSTS", "300s"}};
  }
  static void SetUpTestSuite() { host_count_ = kMany; }
  static void TearDownTestSuite() {
    NicJob::TearDownTestSuite();
    host_count_ = kHosts;
  }

  // The cost of a call of each kind.
  std::vector<Cost> measure(int hosts, const std::vector<Kind>& kinds, bool by_nic) {
    host_of_.clear();
    for (int host = 0; host < hosts; ++host) host_of_.push_back(host);
    auto processes = start_job([&kinds](const NicRank& self) { rank_body(self, kinds); },
                               {{"UNISONO_NIC", by_nic ? "auto" : "off"}});
    std::vector<Cost> costs;
    for (std::size_t i = 0; i < kinds.size() && !HasFailure(); ++i) {
      std::vector<Cost> first(processes.size() - 1);
      make_one_call(processes, first);  // makes the plan
      const Cost wanted = {kMostWakeUps, 0, kinds[i].packets};
      costs.push_back(cost_of_calls(processes, by_nic ? kMostCalls : kLeastCalls, wanted));
      for (const HostProcess& rank : processes) rank.line().say("next");
    }
    expect_all_clean(processes);
    return costs;
  }

 private:
  // Further calls only lower the figures, so they end where these are as low as wanted.
  static Cost cost_of_calls(const std::vector<HostProcess>& ranks, int most, const Cost& wanted) {
    std::vector<Cost> least(ranks.size() - 1);
    Cost greatest;
    for (int i = 0; i < most && !HasFailure(); ++i) {
      make_one_call(ranks, least);
      greatest = {0, 0, 0};
      for (const Cost& each : least) {
        greatest.wake_ups = std::max(greatest.wake_ups, each.wake_ups);
        greatest.received = std::max(greatest.received, each.received);
        greatest.sent = std::max(greatest.sent, each.sent);
      }
      const bool is_low = greatest.wake_ups <= wanted.wake_ups &&
                          greatest.received <= wanted.received && greatest.sent <= wanted.sent;
      if (i + 1 >= kLeastCalls && is_low) break;
    }
    return greatest;
  }
  static void take_least(Cost& least, const Cost& other) {
    least.wake_ups = std::min(least.wake_ups, other.wake_ups);
    least.received = std::min(least.received, other.received);
    least.sent = std::min(least.sent, other.sent);
  }
  static void make_one_call(const std::vector<HostProcess>& ranks, std::vector<Cost>& least) {
    if (!come_in_turn(ranks)) {
      ADD_FAILURE() << "a rank has failed";
      return;
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      std::istringstream line(ranks[rank].line().hear());
      Cost cost;
      line >> cost.wake_ups >> cost.received >> cost.sent;
      EXPECT_FALSE(line.fail()) << "rank " << rank << " has failed";
      if (rank < least.size()) take_least(least[rank], cost);
    }
  }

  // Each rank comes when rank 0 sleeps, and the one before it waits as well. False: one has ended.
  static bool come_in_turn(const std::vector<HostProcess>& ranks) {
    std::vector<Sleeper> waiting;
    for (const HostProcess& rank : ranks) {
      rank.line().say("go");
      const std::string said = rank.line().hear();
      if (said.empty()) return false;
      if (&rank == &ranks.back()) break;
      waiting.emplace_back(nic::test::child_of(rank.pid()));
      Sleeper& first = waiting.front();
      Sleeper& own = waiting.back();
      const std::int64_t before = std::stoll(said);
      while (own.wake_ups() <= before || !first.is_still()) {
        if (own.has_ended() || first.has_ended()) return false;
        own.look();
        first.look();
        std::this_thread::yield();
      }
    }
    return true;
  }
};

std::string text(const Kind& kind, int hosts, const Cost& cost) {
  std::ostringstream text;
  text << kind.name << " of " << kind.integers << " integers on " << hosts << " hosts: woken "
       << cost.wake_ups << " times, datagrams received " << cost.received << ", sent " << cost.sent;
  return text.str();
}

TEST_F(NicWakeUps, DoNotGrowWithHostsOrLengthInTheNicPath) {
  start_daemons();
  std::vector<Kind> kinds = kShort;
  kinds.insert(kinds.end(), kLong.begin(), kLong.end());
  const auto few = measure(kFew, kinds, true);
  const auto many = measure(kMany, kinds, true);
  ASSERT_FALSE(HasFailure());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    for (const auto& [hosts, cost] : {std::pair(kFew, few[i]), std::pair(kMany, many[i])}) {
      SCOPED_TRACE(text(kinds[i], hosts, cost));
      EXPECT_LE(cost.wake_ups, kMostWakeUps);
      EXPECT_LE(cost.received, kSlack) << "programs take all packets";
      EXPECT_LE(cost.sent, kinds[i].packets + kSlack) << "doorbell packets for its own vector";
    }
  }
}

// The same measurement, of processes that communicate by UDP: so it can fail.
TEST_F(NicWakeUps, GrowWithHostsWhereProcessesCommunicate) {
  const auto few = measure(kFew, kShort, false);
  const auto many = measure(kMany, kShort, false);
  ASSERT_FALSE(HasFailure());
  for (std::size_t i = 0; i < kShort.size(); ++i) {
    SCOPED_TRACE(text(kShort[i], kFew, few[i]) + "; " + text(kShort[i], kMany, many[i]));
    EXPECT_GT(many[i].wake_ups, few[i].wake_ups + kSlack);
    EXPECT_GT(many[i].received, few[i].received);
  }
}

}  // namespace
}  // namespace unisono::harness::wake_ups_test
